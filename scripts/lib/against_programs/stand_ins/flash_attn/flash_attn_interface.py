flash_attn_func = None
