"""Chat templates."""

from .case import Pair
from .draft import put, text, toy

VALUE = "metadata_kv[1].value"
TEMPLATE = toy(text("tokenizer.chat_template", "{{ messages[0].content }}"))
PLACE = f"{VALUE}.string"

PAIRS = (
    Pair("template-interpreter", TEMPLATE, put(VALUE, "{{ messages.__class__.__base__ }}"), PLACE),
    Pair("template-syntax", TEMPLATE, put(VALUE, "{{ messages[0].content }"), PLACE),
)
