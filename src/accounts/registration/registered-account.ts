import type { UserId } from '../../protocol/index.ts';
import type { IssuedTokens } from '../sessions/sessions.ts';

export interface LoginDevice {
  readonly deviceId?: string | undefined;
  readonly displayName?: string | undefined;
  /** Whether the client can refresh access tokens. */
  readonly refreshable: boolean;
}

/** A session that has been opened. */
export interface OpenedSession extends IssuedTokens {
  readonly deviceId: string;
}

export interface RegistrationResult {
  readonly userId: UserId;
  readonly session: OpenedSession | undefined;
}
