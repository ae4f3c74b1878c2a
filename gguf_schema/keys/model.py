"""`{arch}.*` of many architectures: sizes, scales, what the last layers give; encoders and decoders."""

from .key import LLM, choice, count, counts, flag, integers, number, numbers, string, strings

SIZES = (
    count("{arch}.context_length", "Tokens that the model was trained to look back on", LLM),
    count("{arch}.embedding_length", "Width of a token's vector", LLM),
    count("{arch}.block_count", "Number of layers", LLM),
    counts("{arch}.feed_forward_length", "Width of a feed-forward layer"),
    count("{arch}.vocab_size", "Number of tokens, where the file holds no vocabulary"),
    count("{arch}.embedding_length_out", "Width of the vectors that come out, where it is another"),
    count(
        "{arch}.embedding_length_per_layer_input",
        "Width of a token's extra vector for each layer",
        "for gemma4 and qwen4exp",
    ),
    count("{arch}.features_length", "Width of the audio features that come in", "for wavtokenizer-dec"),
    count("{arch}.nextn_predict_layers", "Layers at the end that predict tokens after the next one"),
    count("{arch}.n_deepstack_layers", "Layers at the start that image features are added to"),
    integers("{arch}.deepstack_mapping", "For each layer which image features are added to it; -1 for none"),
)

COMPUTATION = (
    string("{arch}.tensor_data_layout", "How the rows of tensors were rearranged; `reference` where it is absent"),
    flag("{arch}.use_parallel_residual", "Attention and feed-forward layer read the same input", "for gptneox"),
    string("{arch}.hidden_activation", "Activation function of the feed-forward layers"),
    flag("{arch}.swin_norm", "Normalises after attention and feed-forward layer instead of before, as Swin does"),
    number("{arch}.embedding_scale", "Tokens' vectors are multiplied by this"),
    number("{arch}.residual_scale", "What a layer adds to its input is multiplied by this", "for minimax-01"),
    number(
        "{arch}.logit_scale",
        "Logits are multiplied by this, or divided where the architecture does so",
        "for cohere2 and others",
    ),
    number("{arch}.attn_logit_softcapping", "Attention scores are squeezed smoothly between this and its negative"),
    number("{arch}.router_logit_softcapping", "Scores of experts are squeezed smoothly between this and its negative"),
    number("{arch}.final_logit_softcapping", "Logits are squeezed smoothly between this and its negative"),
    numbers(
        "{arch}.activation_sparsity_scale",
        "For each layer how many deviations above the mean an activation must be to stay",
    ),
    number("{arch}.activation.situ_beta", "Slope of the activation SiTU", "for kimi-k3"),
    number("{arch}.activation.situ_linear_beta", "Slope of SiTU on the linear side; 0: none", "for kimi-k3"),
    count("{arch}.num_loops", "How often the stack of layers is run"),
    flag("{arch}.skip_loop_final_norm", "Leaves out the last normalisation between two runs of the stack"),
)

HEADS = (
    choice("{arch}.pooling_type", "How vectors of tokens become one: 0 none, 1 mean, 2 first, 3 last, 4 rank"),
    choice(
        "{arch}.classifier.pooling_type",
        "How vectors of tokens become one before a classifier, in the numbers of `pooling_type`",
    ),
    strings("{arch}.classifier.output_labels", "Names of a classifier's classes"),
    count("{arch}.{dense}_feat_in", "Width that a dense layer after pooling takes; the layers are dense_2 and dense_3"),
    count("{arch}.{dense}_feat_out", "Width that a dense layer after pooling gives"),
)

ENCODERS_AND_DECODERS = (
    count("{arch}.decoder_start_token_id", "The token that decoding starts with"),
    count("{arch}.decoder_block_count", "Layers of the decoder; `block_count` where it is absent"),
    count("{arch}.posnet.embedding_length", "Width of the position network's vectors", "for wavtokenizer-dec"),
    count("{arch}.posnet.block_count", "Layers of the position network", "for wavtokenizer-dec"),
    count("{arch}.convnext.embedding_length", "Width of the convolution network's vectors", "for wavtokenizer-dec"),
    count("{arch}.convnext.block_count", "Layers of the convolution network", "for wavtokenizer-dec"),
    count("{arch}.encoder.context_length", "Context of Whisper's encoder; documented, but used by no code"),
    count("{arch}.encoder.embedding_length", "Width of Whisper's encoder; documented, but used by no code"),
    count("{arch}.encoder.block_count", "Layers of Whisper's encoder; documented, but used by no code"),
    count("{arch}.encoder.mels_count", "Mel bands of Whisper's encoder; documented, but used by no code"),
    count("{arch}.encoder.attention.head_count", "Heads of Whisper's encoder; documented, but used by no code"),
    count("{arch}.decoder.context_length", "Context of Whisper's decoder; documented, but used by no code"),
    count("{arch}.decoder.embedding_length", "Width of Whisper's decoder; documented, but used by no code"),
    count("{arch}.decoder.block_count", "Layers of Whisper's decoder; documented, but used by no code"),
    count("{arch}.decoder.attention.head_count", "Heads of Whisper's decoder; documented, but used by no code"),
)

MODEL = SIZES + COMPUTATION + HEADS + ENCODERS_AND_DECODERS
