"""Pages on which a person sees and steers memory. Needs ``pip install 'agboss[server]'``."""

from agboss.admin.mount import add_admin

__all__ = ["add_admin"]
