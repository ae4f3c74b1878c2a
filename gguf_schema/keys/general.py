"""`general.*`: what a file is, who made it of what, how it is best sampled."""

from ..enums import GGUFValueType as T
from .key import Key, bools, choice, count, number, string, strings

NO_LATER_SHARD = "in all files but later shards"

FORMAT = (
    string("general.architecture", "The model's architecture; the first segment of its own keys", NO_LATER_SHARD),
    string("general.type", "What the file holds: model, adapter, mmproj or imatrix", "for an adapter"),
    choice("general.quantization_version", "Version of ggml's quantised blocks", "where a tensor is quantised"),
    choice("general.alignment", "Tensors start at multiples of this; 32 where it is absent"),
    choice("general.file_type", "What most tensors of the file are: a LlamaFileType"),
    strings("general.tensor_extra.name", "The tensors that `general.tensor_extra.prec_a4` speaks of"),
    bools("general.tensor_extra.prec_a4", "For each of `general.tensor_extra.name` whether its input may be in 4 bits"),
)

AUTHORSHIP = (
    string("general.name", "The model's name for people"),
    string("general.author", "Who made the model"),
    string("general.version", "The model's version"),
    string("general.organization", "The organisation that the model comes from"),
    string("general.finetune", "What the model was tuned for: Instruct, Chat, …"),
    string("general.basename", "Name of the family that the model belongs to, without size and tuning"),
    string("general.description", "Anything else that people should know"),
    string("general.quantized_by", "Who quantised the model"),
    string("general.size_label", "Size of the model in short: 7B, 8x7B, …"),
    string("general.license", "The licence as an SPDX expression"),
    string("general.license.name", "The licence's name for people"),
    string("general.license.link", "Where the licence can be read"),
    string("general.url", "Home page or paper of this model"),
    string("general.doi", "Digital object identifier of this model"),
    string("general.uuid", "Universally unique identifier of this model"),
    string("general.repo_url", "Repository of this model"),
    strings("general.tags", "Words to find the model by"),
    strings("general.languages", "Languages that the model speaks, as two letters of ISO 639"),
    strings("general.datasets", "Datasets that it was trained on; documented, but written and read by no code"),
)

SOURCE = (
    string("general.source.url", "Home page or paper of what the file was converted from"),
    string("general.source.doi", "Digital object identifier of what the file was converted from"),
    string("general.source.uuid", "Universally unique identifier of what the file was converted from"),
    string("general.source.repo_url", "Repository of what the file was converted from"),
    string("general.source.huggingface.repository", "Repository on Hugging Face, in old files; `repo_url` replaced it"),
)

BASE_MODELS = (
    count("general.base_model.count", "Models that this one was tuned or merged from; `{id}` numbers them from 0"),
    string("general.base_model.{id}.name", "Name of a parent model"),
    string("general.base_model.{id}.author", "Who made a parent model"),
    string("general.base_model.{id}.version", "Version of a parent model"),
    string("general.base_model.{id}.organization", "The organisation that a parent model comes from"),
    string("general.base_model.{id}.description", "Anything else about a parent model"),
    string("general.base_model.{id}.url", "Home page or paper of a parent model"),
    string("general.base_model.{id}.doi", "Digital object identifier of a parent model"),
    string("general.base_model.{id}.uuid", "Universally unique identifier of a parent model"),
    string("general.base_model.{id}.repo_url", "Repository of a parent model"),
)

DATASETS = (
    count("general.dataset.count", "Datasets that the model was trained on; `{id}` numbers them from 0"),
    string("general.dataset.{id}.name", "Name of a dataset"),
    string("general.dataset.{id}.author", "Who made a dataset"),
    string("general.dataset.{id}.version", "Version of a dataset"),
    string("general.dataset.{id}.organization", "The organisation that a dataset comes from"),
    string("general.dataset.{id}.description", "Anything else about a dataset"),
    string("general.dataset.{id}.url", "Home page or paper of a dataset"),
    string("general.dataset.{id}.doi", "Digital object identifier of a dataset"),
    string("general.dataset.{id}.uuid", "Universally unique identifier of a dataset"),
    string("general.dataset.{id}.repo_url", "Repository of a dataset"),
)

SAMPLING = (
    string("general.sampling.sequence", "The samplers that are advised, in their order"),
    Key("general.sampling.top_k", T.INT32, "Advised number of best tokens to choose from"),
    number("general.sampling.top_p", "Advised share of probability to choose from"),
    number("general.sampling.min_p", "Advised least probability, relative to the best token's"),
    number("general.sampling.xtc_probability", "Advised chance that the best tokens are left out"),
    number("general.sampling.xtc_threshold", "Advised probability above which a token may be left out"),
    number("general.sampling.temp", "Advised temperature"),
    Key("general.sampling.penalty_last_n", T.INT32, "Advised number of last tokens whose repetition is penalised"),
    number("general.sampling.penalty_repeat", "Advised penalty on repeated tokens"),
    Key("general.sampling.mirostat", T.INT32, "Advised version of Mirostat; 0 is off"),
    number("general.sampling.mirostat_tau", "Advised entropy that Mirostat aims at"),
    number("general.sampling.mirostat_eta", "Advised learning rate of Mirostat"),
)

GENERAL = FORMAT + AUTHORSHIP + SOURCE + BASE_MODELS + DATASETS + SAMPLING
