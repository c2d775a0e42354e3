import { Type } from 'typebox';
import type { AccountsSlice } from '../../accounts/index.ts';
import { type Route, route } from '../../kernel/http/index.ts';
import type { Pages } from '../../kernel/pages/index.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import { forbidden } from '../../protocol/index.ts';
import type { BrowserLogins } from '../browser-logins/browser-logins.ts';
import type { LoginContinuation } from '../browser-logins/continuation.ts';
import { LoginFailure } from '../browser-logins/login-failure.ts';
import { ssoStageType } from './sso-stage.ts';

export interface StageContinuationDeps {
  readonly accounts: () => Pick<AccountsSlice, 'browserStages'>;
  readonly pages: Pages;
  readonly randomness: Randomness;
}

const kind = 'interactive-auth';

/**
 * Completes the stage `m.login.sso` of a session when the user of the session has logged in at a provider.
 */
export function stageContinuation({ accounts, pages, randomness }: StageContinuationDeps): LoginContinuation {
  return {
    kind,
    onlyExisting: true,
    async finish({ userId, data, providerSession }, { ip }) {
      const session = String(data['session']);
      const { browserStages } = accounts();
      const { context } = await browserStages.formOf(ssoStageType, session, ip);
      const expected = context.requester?.userId;
      if (expected !== userId) {
        throw new LoginFailure('wrong_user', 'You have logged in as another user', {
          status: 403,
          template: 'sso_auth_bad_user.html',
          values: { user_id_to_verify: expected, user_id: userId },
        });
      }
      await browserStages.complete(session, ssoStageType, { provider: providerSession.provider });
      const nonce = randomString(randomness, 24);
      const policy = { 'script-src': `'nonce-${nonce}'` };
      return pages.page('sso_auth_success.html', { script_nonce: nonce }, { policy });
    },
  };
}

/** Begins the login that confirms an action of a user. */
export function confirmationRoutes(
  logins: BrowserLogins,
  accounts: () => Pick<AccountsSlice, 'browserStages'>,
): Route[] {
  return [
    route(
      {
        method: 'GET',
        path: '/_server/client/sso/confirm/:idpId',
        auth: 'none',
        errors: 'page',
        query: Type.Object({ session: Type.String({ maxLength: 255 }) }),
      },
      async (request) => {
        const site = request.headers['sec-fetch-site'];
        // Only the page that describes the action may lead here.
        if (site !== undefined && site !== 'same-origin') throw forbidden('Open this page from your app');
        const { session } = request.query;
        try {
          await accounts().browserStages.formOf(ssoStageType, session, request.ip);
          const login = { provider: request.params.idpId, kind, data: { session }, isForced: true };
          return await logins.begin(request, login);
        } catch (error) {
          return logins.failed(error);
        }
      },
    ),
  ];
}
