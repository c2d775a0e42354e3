import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { notFound } from '../../protocol/index.ts';
import type { LocalUsers } from './local-user.ts';

/** Permits users to replace their cross-signing keys without interactive authentication; supplied at composition. */
export interface CrossSigningReplacement {
  hasMasterKey(userId: string): Promise<boolean>;
  /**
   * Lets a user replace the keys once without interactive authentication.
   * @returns the time until which the user may replace the keys, in milliseconds since the epoch
   */
  allow(userId: string): Promise<number>;
}

const userPath = '/_server/admin/v1/users/:userId';

/** Lets a user replace the cross-signing keys once without interactive authentication. */
export function crossSigningRoute(keys: CrossSigningReplacement, users: LocalUsers): Route {
  return route(
    {
      operationId: 'allowCrossSigningReplacement',
      method: 'POST',
      path: [
        `${userPath}/_allow_cross_signing_replacement_without_uia`,
        `${userPath}/allow_cross_signing_replacement`,
      ],
      auth: 'admin',
      response: Type.Object({ updatable_without_uia_before_ms: Type.Integer() }),
    },
    async ({ params: { userId } }) => {
      await users.get(userId);
      if (!(await keys.hasMasterKey(userId))) throw notFound('The user has no master cross-signing key');
      return { updatable_without_uia_before_ms: await keys.allow(userId) };
    },
  );
}
