import { RemoteError } from '../../federation-client/index.ts';
import { forbidden, MatrixError, unknown } from '../../protocol/index.ts';

/** Codes that are about the session of a client. Those of a policy server are about ours with it. */
const aboutSessions = new Set(['M_UNKNOWN_TOKEN', 'M_MISSING_TOKEN', 'M_USER_DEACTIVATED']);

/**
 * What a client is told of an event that the policy server of its room has not signed: what that server says, word for
 * word, where it says anything that is about the event.
 * Source: server-server API, "Validating Policy Server signatures".
 */
export function policyServerError(error: unknown): MatrixError {
  if (!(error instanceof RemoteError))
    return unknown('The policy server of the room can not be reached', 502);
  const { status, errcode, message, retryAfter } = error;
  if (status >= 500) return unknown('The policy server of the room does not answer as it should', 502);
  if (status === 401 || aboutSessions.has(errcode)) return forbidden(message);
  const extra = status === 429 && retryAfter !== undefined ? { retry_after_ms: Math.ceil(retryAfter) } : {};
  return new MatrixError(status >= 400 ? status : 403, errcode, message, extra);
}
