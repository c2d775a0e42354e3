import type { IssuedTokens } from './sessions.ts';

/** The device of a client that logs in. */
export interface LoginDevice {
  /** Absent for a new device. */
  readonly deviceId?: string | undefined;
  readonly displayName?: string | undefined;
  /** Whether the client can refresh access tokens. */
  readonly refreshable: boolean;
}

/** A session that has been opened. */
export interface OpenedSession extends IssuedTokens {
  readonly deviceId: string;
}
