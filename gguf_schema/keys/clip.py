"""`clip.*`: encoders of images and sounds, and the projectors of what they give into a language model."""

from ..enums import GGUFValueType as T
from .key import Key, bools, count, flag, number, numbers, signed, string

IMAGES = "for an image encoder"
SOUNDS = "for a sound encoder"
SPEECH = "for a speech generator"
SOME = "for some projectors"
OLD = "written by old converters only"

ENCODERS = (
    flag("clip.has_vision_encoder", "The file holds an image encoder"),
    flag("clip.has_audio_encoder", "The file holds a sound encoder"),
    flag("clip.has_gen_audio_encoder", "The file holds a speech generator"),
    flag("clip.has_text_encoder", f"The file holds a text encoder; {OLD}"),
    flag("clip.has_llava_projector", f"The file holds a projector of LLaVA; {OLD}"),
    flag("clip.has_minicpmv_projector", f"The file holds a projector of MiniCPM-V; {OLD}"),
    flag("clip.has_glm_projector", f"The file holds a projector of GLM-Edge; {OLD}"),
    string("clip.projector_type", "The kind of the projector: mlp, resampler, gemma3, …", "where encoders lack theirs"),
    flag("clip.use_gelu", "Activates with GELU"),
    flag("clip.use_silu", "Activates with SiLU"),
    Key("clip.minicpmv_version", T.INT32, f"Version of MiniCPM-V; {OLD}"),
    count("clip.minicpmv_query_num", "Vectors that MiniCPM-V's projector makes of an image"),
)

TEXT = (
    count("clip.text.context_length", f"Tokens that the text encoder takes; {OLD}"),
    count("clip.text.embedding_length", f"Width of the text encoder's vectors; {OLD}"),
    count("clip.text.feed_forward_length", f"Width of the text encoder's feed-forward layers; {OLD}"),
    count("clip.text.block_count", f"Layers of the text encoder; {OLD}"),
    count("clip.text.projection_dim", f"Width of the vectors that the text encoder gives; {OLD}"),
    count("clip.text.attention.head_count", f"Heads of a layer of the text encoder; {OLD}"),
    number(
        "clip.text.attention.layer_norm_epsilon", f"Added to the variance before the root in the text encoder; {OLD}"
    ),
)

VISION = (
    string("clip.vision.projector_type", "The kind of the image encoder's projector, where sounds have another"),
    count("clip.vision.embedding_length", "Width of an image patch's vector", IMAGES),
    count("clip.vision.feed_forward_length", "Width of a feed-forward layer", IMAGES),
    count("clip.vision.block_count", "Number of layers", IMAGES),
    count("clip.vision.projection_dim", "Width of the vectors that the projector gives", IMAGES),
    count("clip.vision.attention.head_count", "Query heads of a layer", IMAGES),
    count("clip.vision.attention.head_count_kv", "Key and value heads of a layer; `head_count` where it is absent"),
    count("clip.vision.attention.head_dim", "Width of a head; `embedding_length / head_count` where it is absent"),
    number("clip.vision.attention.layer_norm_epsilon", "Added to the variance before the root", IMAGES),
    count("clip.vision.image_size", "Side of the square image that the encoder takes, in pixels", IMAGES),
    count("clip.vision.patch_size", "Side of a patch in pixels", IMAGES),
    count("clip.vision.image_min_pixels", "Least pixels of an image; smaller ones are enlarged", SOME),
    count("clip.vision.image_max_pixels", "Most pixels of an image; larger ones are reduced", SOME),
    count("clip.vision.preproc_image_size", "Longest side of an image after it was scaled"),
    count("clip.vision.preproc_min_tiles", "Least tiles that an image is cut into"),
    count("clip.vision.preproc_max_tiles", "Most tiles that an image is cut into"),
    numbers("clip.vision.image_mean", "Subtracted from red, green and blue"),
    numbers("clip.vision.image_std", "Red, green and blue are divided by this"),
    signed("clip.vision.image_grid_pinpoints", "Sizes that an image may be scaled to, width and height in turn"),
    count("clip.vision.image_crop_resolution", f"Side of a tile in pixels; {OLD}"),
    count("clip.vision.image_split_resolution", f"Side of an image before it is cut into tiles; {OLD}"),
    string("clip.vision.image_aspect_ratio", f"What is done to images that are not square; {OLD}"),
    string("clip.vision.mm_patch_merge_type", "How vectors of tiles are put together: flat or spatial_unpad"),
    string("clip.vision.mm_projector_type", f"The kind of LLaVA's projector; {OLD}"),
    signed("clip.vision.feature_layer", "Layers whose output goes to the projector"),
    bools("clip.vision.is_deepstack_layers", "For each layer whether the language model's layers get its output"),
    count("clip.vision.spatial_merge_size", "Side of the square of patches that become one vector"),
    count("clip.vision.n_wa_pattern", "Every how many layers one attends to the whole image", "for qwen2.5vl_merger"),
    signed(
        "clip.vision.wa_layer_indexes",
        "Layers that attend to the whole image; of MiniCPM-V the one that merges patches",
        SOME,
    ),
    signed("clip.vision.wa_pattern_mode", "For each layer how it attends: -1 to all, others within windows", SOME),
    count("clip.vision.window_size", "Side of a window that layers attend within", SOME),
    count("clip.vision.expert_used_count", "Experts that a patch is sent to", SOME),
    signed("clip.vision.expert_count_per_layer", "For each layer its number of experts; 0 for none"),
    number("clip.vision.swiglu_clamp", "Where activations are cut off", SOME),
    count("clip.vision.projector.scale_factor", "Side of the square of vectors that the projector makes one of"),
    count("clip.vision.projector.query_side", "Side of the square of queries of a window", SOME),
    count("clip.vision.projector.window_side", "Side of a window of the projector", SOME),
    signed(
        "clip.vision.projector.spatial_offsets",
        "For each `feature_layer` which vector of a square is taken; -1: a mean",
        SOME,
    ),
    count("clip.vision.sam.block_count", "Layers of the SAM encoder", "for deepseekocr"),
    count("clip.vision.sam.embedding_length", "Width of the SAM encoder's vectors", "for deepseekocr"),
    count("clip.vision.sam.head_count", "Heads of a layer of the SAM encoder", "for deepseekocr"),
)

AUDIO = (
    string("clip.audio.projector_type", "The kind of the sound encoder's projector, where images have another"),
    count("clip.audio.embedding_length", "Width of the vectors", SOUNDS),
    count("clip.audio.feed_forward_length", "Width of a feed-forward layer", SOUNDS),
    count("clip.audio.block_count", "Number of layers", SOUNDS),
    count("clip.audio.projection_dim", "Width of the vectors that the projector gives", SOUNDS),
    count("clip.audio.attention.head_count", "Heads of a layer", SOUNDS),
    number("clip.audio.attention.layer_norm_epsilon", "Added to the variance before the root", SOUNDS),
    count("clip.audio.num_mel_bins", "Mel bands of the spectrogram", SOUNDS),
    signed("clip.audio.feature_layer", "Layers whose output goes to the projector"),
    count("clip.audio.chunk_size", "Frames that attend to each other", SOME),
    count("clip.audio.conv_kernel_size", "Frames that a convolution looks at", SOME),
    count("clip.audio.max_pos_emb", "Greatest distance that has a vector of its own", SOME),
    count("clip.audio.subsampling_factor", "Frames that become one vector before the layers", SOME),
    count("clip.audio.window_size", "Frames that a layer with a window looks at", SOME),
    signed("clip.audio.wa_pattern_mode", "For each layer how it attends: -1 to all, 0 within a window", SOME),
    count("clip.audio.local_block_count", "Layers that work within groups of frames", SOME),
    count("clip.audio.local_group_size", "Frames of a group that some layers work within", SOME),
    count("clip.audio.rvq.num_quantizers", "Codebooks that are applied one after the other"),
    signed("clip.audio.rvq.codebook_size", "Entries of each codebook"),
    count("clip.audio.projector.stack_factor", "Frames that the projector joins to one vector", SOME),
    count("clip.audio.projector.window_size", "Frames that the projector attends to at once", SOME),
    count("clip.audio.projector.downsample_rate", "Frames of a window for each vector that comes out", SOME),
    count("clip.audio.projector.head_count", "Heads of the projector", SOME),
)

GENERATED_AUDIO = (
    string("clip.gen.audio.projector_type", "The kind of the speech generator's projector"),
    string("clip.gen.audio.model_variant", "The speech generator's variant"),
    count("clip.gen.audio.embedding_length", "Width of the vectors", SPEECH),
    count("clip.gen.audio.feed_forward_length", "Width of a feed-forward layer", SPEECH),
    count("clip.gen.audio.block_count", "Number of layers", SPEECH),
    count("clip.gen.audio.projection_dim", "Width of the vectors that the projector gives", SPEECH),
    count("clip.gen.audio.attention.head_count", "Query heads of a layer", SPEECH),
    count("clip.gen.audio.attention.head_count_kv", "Key and value heads of a layer; `head_count` where it is absent"),
    number("clip.gen.audio.attention.layer_norm_epsilon", "Added to the variance before the root", SPEECH),
)

CLIP = ENCODERS + TEXT + VISION + AUDIO + GENERATED_AUDIO
