import type { RefreshCheck } from '../../accounts/index.ts';
import { writerFor } from '../../kernel/database/index.ts';
import { MatrixError } from '../../protocol/index.ts';
import type { OAuthTables } from '../tables.ts';

/**
 * Refuses to refresh a session of OAuth 2.0 by `POST /refresh`. That endpoint neither checks the client nor notices a
 * stolen refresh token.
 * @throws MatrixError 401 M_UNKNOWN_TOKEN
 */
export const checkNotOAuth: RefreshCheck = async (writer, { userId, deviceId = '' }) => {
  const session = await writerFor<OAuthTables>(writer)
    .selectFrom('oauth_sessions')
    .select('device_id')
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .executeTakeFirst();
  if (session === undefined) return;
  throw new MatrixError(401, 'M_UNKNOWN_TOKEN', 'Sessions of OAuth 2.0 are refreshed at the token endpoint');
};
