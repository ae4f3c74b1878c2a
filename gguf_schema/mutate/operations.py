"""Which operations there are for which kind of field."""

from . import head, raw, texts, values
from .change import Operation

OPERATIONS: dict[str, tuple[Operation, ...]] = {
    "file": raw.FILE,
    "magic": raw.MAGIC + raw.TRUNCATE,
    "version": values.VERSION + raw.TRUNCATE,
    "count": values.COUNT + raw.TRUNCATE,
    "metadata": head.METADATA,
    "pair": head.PAIR,
    "key.len": values.LENGTH + raw.TRUNCATE,
    "key.string": texts.KEY + raw.TRUNCATE,
    "value_type": values.VALUE_TYPE + raw.TRUNCATE,
    "integer": values.INTEGER + raw.TRUNCATE,
    "float": values.INTEGER + raw.TRUNCATE,
    "bool": values.BOOL + raw.TRUNCATE[:1],
    "alignment": values.ALIGNMENT + raw.TRUNCATE,
    "string.len": values.LENGTH + raw.TRUNCATE,
    "string.string": texts.STRING + raw.TRUNCATE,
    "array.type": values.VALUE_TYPE + raw.TRUNCATE,
    "array.len": values.COUNT + raw.TRUNCATE,
    "infos": head.INFOS,
    "info": head.INFO,
    "name.len": values.LENGTH + raw.TRUNCATE,
    "name.string": texts.NAME + raw.TRUNCATE,
    "n_dimensions": values.DIMENSIONS_NUMBER + raw.TRUNCATE,
    "dimension": values.DIMENSION + raw.TRUNCATE,
    "tensor_type": values.TENSOR_TYPE + raw.TRUNCATE,
    "offset": values.OFFSET + raw.TRUNCATE,
    "padding": raw.PADDING + raw.TRUNCATE,
    "data": raw.DATA + raw.TRUNCATE,
    "data_section": (),
    "tail": raw.TAIL + raw.TRUNCATE[1:2],
    "other": values.INTEGER + raw.TRUNCATE,
}
"""Kind of field → its operations."""
