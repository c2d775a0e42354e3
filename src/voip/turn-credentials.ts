import { createHmac } from 'node:crypto';

/** Options about TURN servers. */
export interface TurnOptions {
  readonly turn_uris: readonly string[];
  readonly turn_shared_secret: string | null;
  readonly turn_username: string | null;
  readonly turn_password: string | null;
  /** Milliseconds that credentials are valid. */
  readonly turn_user_lifetime: number;
}

/** Credentials for the TURN servers; `ttl` is in seconds. */
export interface TurnCredentials {
  readonly username: string;
  readonly password: string;
  readonly uris: readonly string[];
  readonly ttl: number;
}

/**
 * Returns credentials for a user. They are computed from the secret that is shared with the TURN servers; without a
 * secret, they are the configured user name and password. Source: "A REST API For Access To TURN Services" (Internet
 * draft).
 * @param now milliseconds since the epoch
 * @returns `undefined` without `turn_uris`, and when neither a secret nor a user name with password is configured
 */
export function turnCredentials(
  options: TurnOptions,
  userId: string,
  now: number,
): TurnCredentials | undefined {
  const { turn_uris: uris, turn_shared_secret: secret } = options;
  if (uris.length === 0) return undefined;
  const ttl = Math.floor(options.turn_user_lifetime / 1_000);
  if (secret !== null) {
    const username = `${Math.floor(now / 1_000) + ttl}:${userId}`;
    return { username, password: createHmac('sha1', secret).update(username).digest('base64'), uris, ttl };
  }
  const { turn_username: username, turn_password: password } = options;
  return username === null || password === null ? undefined : { username, password, uris, ttl };
}
