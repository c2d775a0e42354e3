import { Type } from 'typebox';
import { type Route, redirect, route } from '../../kernel/http/index.ts';
import type { BrowserLogins } from '../browser-logins/browser-logins.ts';
import { LoginFailure } from '../browser-logins/login-failure.ts';
import { CasProvider } from './cas-provider.ts';

const contract = { method: 'GET', auth: 'none', errors: 'page' } as const;

/**
 * Routes of logins with CAS: one for browsers that come from the CAS server, and one for clients that know only
 * `m.login.cas`.
 */
export function casRoutes(logins: BrowserLogins): Route[] {
  return [
    route(
      {
        ...contract,
        path: ['/_proto/client/r0/login/cas/ticket', '/_proto/client/v3/login/cas/ticket'],
        query: Type.Object({
          session: Type.String({ default: '' }),
          ticket: Type.String({ default: '', maxLength: 2000 }),
        }),
      },
      (request) => {
        const { session, ticket } = request.query;
        return logins.respond(request, session, async (provider, secrets) => {
          if (!(provider instanceof CasProvider) || ticket === '') {
            throw new LoginFailure('invalid_response', 'The CAS server sent an invalid response');
          }
          return provider.authenticate(ticket, session, secrets);
        });
      },
    ),
    route(
      {
        ...contract,
        path: ['/_proto/client/r0/login/cas/redirect', '/_proto/client/v3/login/cas/redirect'],
        query: Type.Object({ redirectUrl: Type.String() }),
      },
      ({ query }) => redirect(`/_matrix/client/v3/login/sso/redirect/cas?${new URLSearchParams(query)}`),
    ),
  ];
}
