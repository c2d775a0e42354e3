import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { missingParam } from '../../protocol/index.ts';
import type { LocalUsers } from '../users/local-user.ts';
import type { AccountValidity } from './account-validity.ts';

/**
 * Sets the time until which an account is valid; at that time the account is locked. No mails are sent about it, so
 * `enable_renewal_emails` has no effect.
 */
export function accountValidityRoute(validity: AccountValidity, users: LocalUsers): Route {
  return route(
    {
      operationId: 'renewAccount',
      method: 'POST',
      path: '/_server/admin/v1/account_validity/validity',
      auth: 'admin',
      body: Type.Object({
        user_id: Type.String(),
        expiration_ts: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
        enable_renewal_emails: Type.Optional(Type.Boolean()),
      }),
      response: Type.Object({ expiration_ts: Type.Integer() }),
    },
    async ({ body: { user_id: userId, expiration_ts: until } }) => {
      await users.getActive(userId);
      // The configuration has no default period of validity.
      if (until === undefined) throw missingParam("'expiration_ts' is missing");
      await validity.renew(userId, until);
      return { expiration_ts: until };
    },
  );
}
