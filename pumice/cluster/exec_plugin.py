"""Users of a kubeconfig with an `exec` plugin: a program that prints credentials, run as by kubectl.

https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
"""

import os
from asyncio import IncompleteReadError
from asyncio.subprocess import DEVNULL, PIPE, create_subprocess_exec
from datetime import datetime
from typing import Annotated

import msgspec

from pumice.api.json_words import either, quoted
from pumice.api.meta import ApiStruct
from pumice.cluster.connection import MOST_BYTES, ConfigurationError
from pumice.cluster.kubeconfig_fields import Entry, Fields, check, checked
from pumice.cluster.renewed import Granted

_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_KNOWN = {"apiVersion": _VERSIONS, "interactiveMode": ("Never", "IfAvailable", "Always")}
_STDIN = 0
_UNSENDABLE = TypeError, OverflowError, RecursionError
"""What an extension raises that JSON cannot hold."""


class _CredentialStatus(ApiStruct, frozen=True):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _Credential(ApiStruct, frozen=True):
    api_version: str
    status: _CredentialStatus


async def run(user: Entry, cluster: Fields) -> Granted:
    """Run the plugin of a user, which may ask people on the terminal, and hear of the cluster (`provideClusterInfo`).

    Raises:
        ConfigurationError: The plugin is described wrongly, cannot be run, fails, or gives no credentials.
        ValueError: A variable of its environment has an impossible name.
    """
    file, where = user.file, f"kubeconfig {user.file}: user.exec"
    settings = {"interactiveMode": "IfAvailable"} | checked(file, "user.exec", user.fields["exec"])
    for name, known in _KNOWN.items():
        if (value := settings.get(name, "")) not in known:
            raise ConfigurationError(
                f"{where}.{name}: expected {either(known)}, found {quoted(value)}"
            )
    if not (command := settings.get("command")):
        raise ConfigurationError(f"{where}.command: expected a program, found nothing")
    if os.sep in command:
        command = str(file.parent.absolute() / command)
    where = f"{where}: the plugin {command}"
    spec: Fields = {"interactive": settings["interactiveMode"] != "Never" and os.isatty(_STDIN)}
    if settings["interactiveMode"] == "Always" and not spec["interactive"]:
        raise ConfigurationError(f"{where} needs a terminal (interactiveMode Always)")
    if settings.get("provideClusterInfo"):
        spec["cluster"] = cluster
    asked = {"apiVersion": settings["apiVersion"], "kind": "ExecCredential", "spec": spec}
    environ = dict(os.environ)
    for index, each in enumerate(settings.get("env", ())):
        variable = checked(
            file, "user.exec.env", check(file, f"user.exec.env[{index}]", dict, each)
        )
        environ[variable.get("name", "")] = variable.get("value", "")
    try:
        environ["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(asked).decode()
        answer = await _output([command, *settings.get("args", ())], environ, spec["interactive"])
        found = msgspec.json.decode(answer, type=_Credential)
        return _granted(found, settings["apiVersion"])
    except OSError as error:
        hint = f"; {quoted(settings['installHint'])}" if "installHint" in settings else ""
        raise ConfigurationError(f"{where} cannot be run: {error.strerror}{hint}") from error
    except (ConfigurationError, msgspec.DecodeError, *_UNSENDABLE) as error:
        raise ConfigurationError(
            f"{where} gave no credentials: {error}; run it by hand to see why"
        ) from error


async def _output(command: list[str], environ: dict[str, str], is_interactive: bool) -> bytes:
    """What a program prints; its stderr is that of this process, as people may have to read it."""
    stdin = None if is_interactive else DEVNULL
    plugin = await create_subprocess_exec(*command, env=environ, stdin=stdin, stdout=PIPE)
    assert plugin.stdout is not None
    try:
        await plugin.stdout.readexactly(MOST_BYTES + 1)
        raise ConfigurationError(f"it prints more than {MOST_BYTES:,} bytes")
    except IncompleteReadError as ended:
        answer = ended.partial
        await plugin.wait()
    finally:  # kills it if it still runs, and reads no more of what others write there
        plugin._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
        await plugin.wait()
    if plugin.returncode:
        raise ConfigurationError(f"it ended with status {plugin.returncode}")
    return answer


def _granted(found: _Credential, version: str) -> Granted:
    if found.api_version != version:
        raise ConfigurationError(
            f"apiVersion: expected {version}, found {quoted(found.api_version)}"
        )
    status, expiry = found.status, found.status.expiration_timestamp
    certificate, key = status.client_certificate_data or "", status.client_key_data or ""
    if not (status.token or certificate) or bool(certificate) != bool(key):
        raise ConfigurationError(
            "expected status.token, or status.clientCertificateData and status.clientKeyData"
        )
    return Granted(status.token or "", certificate, key, expiry.timestamp() if expiry else None)
