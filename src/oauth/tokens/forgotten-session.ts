import type { BeforeReopening } from '../../accounts/index.ts';
import { writerFor } from '../../kernel/database/index.ts';
import type { OAuthTables } from '../tables.ts';

/**
 * Deletes the record that a device was logged in by OAuth 2.0, and the digests of the refresh tokens that the device
 * has exchanged. Must run when a device logs in again with a password: its new session is an ordinary session, which
 * uses interactive authentication and `POST /refresh`.
 */
export const forgetOAuthSession: BeforeReopening = async (anyWriter, { userId, deviceId }) => {
  const writer = writerFor<OAuthTables>(anyWriter);
  for (const table of ['oauth_sessions', 'oauth_exchanged_tokens'] as const) {
    await writer.deleteFrom(table).where('user_id', '=', userId).where('device_id', '=', deviceId).execute();
  }
};
