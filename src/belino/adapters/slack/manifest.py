"""The app manifest: everything belino needs of Slack, to be pasted where an app is made."""

from belino.domain.ports import Question

SCOPES = (
    "app_mentions:read",
    "channels:history",
    "channels:read",
    "chat:write",
    "files:read",
    "files:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "mpim:history",
    "mpim:read",
    "reactions:read",
    "users:read",
)
EVENTS = (
    "app_mention",
    "message.channels",
    "message.groups",
    "message.im",
    "message.mpim",
    "reaction_added",
    "reaction_removed",
)


def manifest(*, name: str = "belino") -> str:
    """The manifest for Socket Mode, as YAML."""
    scopes = "\n".join(f"      - {scope}" for scope in SCOPES)
    events = "\n".join(f"      - {event}" for event in EVENTS)
    return f"""display_information:
  name: {name}
features:
  app_home:
    home_tab_enabled: false
    messages_tab_enabled: true
    messages_tab_read_only_enabled: false
  bot_user:
    display_name: {name}
    always_online: true
oauth_config:
  scopes:
    bot:
{scopes}
settings:
  event_subscriptions:
    bot_events:
{events}
  interactivity:
    is_enabled: false
  org_deploy_enabled: false
  socket_mode_enabled: true
  token_rotation_enabled: false
"""


SETUP = (
    Question(
        key="bot_token",
        ask="Which Bot User OAuth Token does the app have? (xoxb-…)",
        secret=True,
        tells="Make the app: https://api.slack.com/apps, Create New App, From a manifest, your workspace, YAML;\n"
        f"paste this, and press Next and Create:\n\n{manifest()}\n"
        "Then Install App, Install to Workspace, Allow. The token stands there afterwards.",
    ),
    Question(
        key="app_token",
        ask="Which app-level token did you generate? (xapp-…)",
        secret=True,
        tells="Basic Information, App-Level Tokens, Generate Token and Scopes: any name, the scope connections:write.",
        when=("mode", "socket"),
    ),
    Question(
        key="signing_secret",
        ask="Which Signing Secret does the app have?",
        secret=True,
        tells="Events come over HTTP: turn Settings, Socket Mode off, and once belino serves, enter under Event\n"
        "Subscriptions https://YOUR-HOST/hooks/slack/default, at the end the account's name if it has another.\n"
        "The secret stands under Basic Information, App Credentials.",
        when=("mode", "http"),
    ),
)
