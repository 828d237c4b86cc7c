#!/usr/bin/env bash
# One virtual environment per peer, so that versions never conflict.
# usage: ./setup.sh [peer ...]      (VENVS=/some/dir to move them)
set -euo pipefail
cd "$(dirname "$0")"
VENVS=${VENVS:-$PWD/.venvs}
PY=${PY:-python3}
mkdir -p "$VENVS"
[ -x "$VENVS/_uv/bin/uv" ] || { $PY -m venv "$VENVS/_uv" && "$VENVS/_uv/bin/pip" -q install uv; }
UV="$VENVS/_uv/bin/uv"
declare -A REQ=(
  [agboss]="$PWD/../..[fast]"
  [floors]="tiktoken llama-index-core"
  [langgraph]="langgraph langgraph-checkpoint-sqlite langchain"
  [pydantic_ai]="pydantic-ai-slim"
  [openai_agents]="openai-agents"
  [google_adk]="google-adk[db] aiosqlite"
  [llama_workflows]="llama-index-workflows llama-index-core"
  [strands]="strands-agents"
  [msaf]="agent-framework-core"
  [agno]="agno sqlalchemy[asyncio] aiosqlite"
)
for p in "${@:-${!REQ[@]}}"; do
  for q in $p; do
    [ -x "$VENVS/$q/bin/python" ] || "$UV" venv -q --python "$PY" "$VENVS/$q"
    "$UV" pip install -q --python "$VENVS/$q/bin/python" ${REQ[$q]}
    (unset PYTHONDONTWRITEBYTECODE; "$VENVS/$q/bin/python" -m compileall -q -j 0 "$VENVS/$q/lib" >/dev/null 2>&1 || true)
    echo "$q: $("$UV" pip list -q --python "$VENVS/$q/bin/python" 2>/dev/null | wc -l) packages"
  done
done
