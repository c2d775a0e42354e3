import { Type } from 'typebox';
import { type Reply, type Route, redirect, route, toDeclaredSpelling } from '../../kernel/http/index.ts';
import type { Pages } from '../../kernel/pages/index.ts';
import type { EmailOptions } from '../../mail/index.ts';
import { MatrixError } from '../../protocol/index.ts';
import { submitPaths } from '../validation/mail-validation.ts';
import type { Purpose } from '../validation/purpose.ts';
import type { ValidatedSessions } from '../validation/validated-sessions.ts';
import type { ValidationSessions } from '../validation/validation-sessions.ts';
import { phoneSubmitPath } from './request-token-routes.ts';

export interface SubmitRoutesDeps {
  readonly sessions: ValidationSessions;
  readonly pages: Pages;
  readonly serverName: string;
  /** Names of the templates of pages. */
  readonly email: EmailOptions;
}

const parameters = Type.Object({
  sid: Type.String({ maxLength: 255 }),
  client_secret: Type.String({ maxLength: 255 }),
  token: Type.String({ maxLength: 255 }),
});

type Parameters = { readonly sid: string; readonly client_secret: string; readonly token: string };

const credentialsIn = ({ sid, client_secret: clientSecret }: Parameters) => ({ sid, clientSecret });

/** The pages that the links in mails lead to. */
export function submitRoutes(deps: SubmitRoutesDeps): Route[] {
  return [linkRoute('registration', deps), linkRoute('add_threepid', deps), ...resetRoutes(deps)];
}

/** A link that validates the address as soon as it is opened. */
function linkRoute(purpose: Purpose, deps: SubmitRoutesDeps): Route {
  return route(
    {
      method: 'GET',
      getChanges: true,
      path: toDeclaredSpelling(submitPaths[purpose]),
      auth: 'none',
      errors: 'page',
      query: parameters,
    },
    ({ query }) => submit(purpose, query, deps),
  );
}

/**
 * The link of a password reset leads to a page where the user confirms the reset. Only the confirmation validates the
 * address, because programs that check mails open links, too.
 */
function resetRoutes(deps: SubmitRoutesDeps): Route[] {
  const { sessions, pages, serverName } = deps;
  const contract = {
    path: toDeclaredSpelling(submitPaths.password_reset),
    auth: 'none',
    errors: 'page',
  } as const;
  return [
    route({ ...contract, method: 'GET', query: parameters }, ({ query }) =>
      orFailurePage('password_reset', deps, async () => {
        const { nextLink } = await sessions.check('password_reset', credentialsIn(query), query.token);
        const target = nextLink === undefined ? '' : ` ${new URL(nextLink).origin}`;
        return pages.page(
          'password_reset_confirmation.html',
          { ...query, server_name: serverName },
          // Browsers apply the policy also to the redirect that answers the form.
          { policy: { 'form-action': `'self'${target}` } },
        );
      }),
    ),
    route({ ...contract, method: 'POST', bodyMode: 'form', body: parameters }, ({ body }) =>
      submit('password_reset', body, deps),
    ),
  ];
}

function submit(purpose: Purpose, given: Parameters, deps: SubmitRoutesDeps): Promise<Reply> {
  const { sessions, pages, serverName, email } = deps;
  return orFailurePage(purpose, deps, async () => {
    const { nextLink } = await sessions.submit(purpose, credentialsIn(given), given.token);
    if (nextLink !== undefined) {
      return redirect(nextLink, 303, { 'Referrer-Policy': 'no-referrer', 'Cache-Control': 'no-store' });
    }
    return pages.page(email[`${purpose}_template_success_html`], { server_name: serverName });
  });
}

async function orFailurePage(
  purpose: Purpose,
  { pages, serverName, email }: SubmitRoutesDeps,
  work: () => Promise<Reply>,
): Promise<Reply> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof MatrixError)) throw error;
    const values = { failure_reason: error.message, server_name: serverName };
    return pages.page(email[`${purpose}_template_failure_html`], values, { status: error.status });
  }
}

/** Takes the token of a text message. Source: identity service API, `POST /validate/msisdn/submitToken`. */
export function phoneSubmitRoute(validated: ValidatedSessions): Route {
  return route(
    {
      method: 'POST',
      path: toDeclaredSpelling(phoneSubmitPath),
      auth: 'none',
      body: parameters,
      bodyLimit: 16_384,
      response: Type.Object({ success: Type.Boolean() }),
    },
    async ({ body }) => ({ success: await validated.submitPhoneToken(credentialsIn(body), body.token) }),
  );
}
