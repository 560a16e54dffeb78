"""What LoRA adapts where the config names nothing. Nothing is imported here."""

# Query, key, value and output projections by model type (appendix A). peft adapts the modules that
# match and says nothing of a name that matches none, so training refuses such a name.
LORA_TARGETS = {
    "llama": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "mistral": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "qwen2": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "qwen3": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "gemma2": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "phi3": ("qkv_proj", "o_proj"),
    "deepseek_v3": ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"),
    "bert": ("query", "key", "value", "attention.output.dense"),
    "roberta": ("query", "key", "value", "attention.output.dense"),
    "xlm-roberta": ("query", "key", "value", "attention.output.dense"),
}
