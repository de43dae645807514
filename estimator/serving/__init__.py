"""What serving engines hold on each card, in closed form: vLLM, SGLang, TGI, ExLlama, llama.cpp and Ollama."""
