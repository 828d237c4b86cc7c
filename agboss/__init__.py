"""Agent workflows whose memory can be trusted."""

from agboss import errors as _errors
from agboss.app import App, RunStream, Thread, ThreadExport, WorkingMemory, create_app
from agboss.components.action import ActionContext, action
from agboss.components.agent import PromptContext, agent
from agboss.components.boundary import AnswerFinish, Finish, Start, TaskStart, workflow_finish, workflow_start
from agboss.components.injection import InjectionToken, injectable, provide, provide_class, provide_factory
from agboss.components.model_provider import model_provider
from agboss.components.router import router
from agboss.components.settings import (
    Compaction,
    Defaults,
    FunctionRouter,
    History,
    JevRouter,
    Limits,
    LlmRouter,
    ModelDefaults,
    ModelSpec,
    Price,
    Rule,
    RulesRouter,
    RunLimits,
    WorkflowSettings,
)
from agboss.components.tool import ToolContext, ToolRef, tool
from agboss.components.workflow import WorkflowDefinition, workflow
from agboss.errors import *  # noqa: F403 - the error tree has its own sorted door
from agboss.events import RunEvent
from agboss.flow import chain, from_
from agboss.models import CallSettings, ChatModel, ModelReply, ModelRequest, ModelUsage, ToolSchema
from agboss.routers import RouteOption, RouteRequest, RouteResult
from agboss.run import CompactionReport, RunResult
from agboss_memory.messages import Message, Summary, Tern, TernStatus, UsageRecord

__all__ = [
    "ActionContext",
    "AnswerFinish",
    "App",
    "CallSettings",
    "ChatModel",
    "Compaction",
    "CompactionReport",
    "Defaults",
    "Finish",
    "FunctionRouter",
    "History",
    "InjectionToken",
    "JevRouter",
    "Limits",
    "LlmRouter",
    "Message",
    "ModelDefaults",
    "ModelReply",
    "ModelRequest",
    "ModelSpec",
    "ModelUsage",
    "Price",
    "PromptContext",
    "RouteOption",
    "RouteRequest",
    "RouteResult",
    "Rule",
    "RulesRouter",
    "RunEvent",
    "RunLimits",
    "RunResult",
    "RunStream",
    "Start",
    "Summary",
    "TaskStart",
    "Tern",
    "TernStatus",
    "Thread",
    "ThreadExport",
    "ToolContext",
    "ToolRef",
    "ToolSchema",
    "UsageRecord",
    "WorkflowDefinition",
    "WorkflowSettings",
    "WorkingMemory",
    "action",
    "agent",
    "chain",
    "create_app",
    "from_",
    "injectable",
    "model_provider",
    "provide",
    "provide_class",
    "provide_factory",
    "router",
    "tool",
    "workflow",
    "workflow_finish",
    "workflow_start",
    *_errors.__all__,
]
