import { RemoteError } from '../../federation-client/index.ts';
import { forbidden, MatrixError, unknown } from '../../protocol/index.ts';

/**
 * Error codes about the session of a client. A policy server that sends one of these codes means the session of this
 * server, not of the client, so the client receives another error code.
 */
const sessionErrorCodes = new Set(['M_UNKNOWN_TOKEN', 'M_MISSING_TOKEN', 'M_USER_DEACTIVATED']);

/**
 * Returns the error that a client receives when the room's policy server has not signed an event: the error code and
 * text of the policy server if they are about the event.
 * Source: server-server API, "Validating Policy Server signatures".
 */
export function policyServerError(error: unknown): MatrixError {
  if (!(error instanceof RemoteError)) return unknown('The policy server of the room cannot be reached', 502);
  const { status, errcode, message, retryAfter } = error;
  if (status >= 500) return unknown('The policy server of the room failed', 502);
  if (status === 401 || sessionErrorCodes.has(errcode)) return forbidden(message);
  const extraFields =
    status === 429 && retryAfter !== undefined ? { retry_after_ms: Math.ceil(retryAfter) } : {};
  return new MatrixError(status >= 400 ? status : 403, errcode, message, extraFields);
}
