import type { UserId } from '../../protocol/index.ts';
import type { OpenedSession } from '../sessions/opened-session.ts';

/** A registered user, and the session that was opened for the client. */
export interface RegistrationResult {
  readonly userId: UserId;
  /** `undefined` when the client requested no session (`inhibit_login`). */
  readonly session: OpenedSession | undefined;
}
