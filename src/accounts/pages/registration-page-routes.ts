import { Type } from 'typebox';
import { Reply, type Route, type RouteRequest, route, setCookie } from '../../kernel/http/index.ts';
import { textFields } from './fallback-routes.ts';
import type { RegistrationPages } from './registration-pages.ts';
import { requireSameOrigin } from './same-origin.ts';

const path = '/_server/client/register';
const text = Type.String({ default: '' });

/**
 * Name of the cookie that remembers a page. The user returns to it after the registration, for instance to the login of
 * an app.
 */
const backCookie = 'hearth_after_registration';

/** Returns the path and query if the URL is a login or account page of this server; `undefined` for any other URL. */
const allowedReturnPage = (url: string | undefined): string | undefined =>
  /^\/_(synapse|server)\/client\/(oauth2\/[a-z_]+|account)(\?[\x21\x23-\x5b\x5d-\x7e]*)?$/.exec(
    url ?? '',
  )?.[0];

/** Returns the page in the cookie; `undefined` when there is none. */
const returnPageOf = ({ cookies }: Pick<RouteRequest, 'cookies'>) => allowedReturnPage(cookies[backCookie]);

/** The registration page, and the pages of the stages that follow. */
export function registrationPageRoutes(pages: RegistrationPages): Route[] {
  const contract = { auth: 'none', errors: 'page' } as const;
  return [
    route(
      { ...contract, method: 'GET', path, query: Type.Object({ token: text, continue: text }) },
      async (request) => {
        const page = await pages.show(request.query.token);
        const back = allowedReturnPage(request.query.continue);
        if (back === undefined) return page;
        const cookie = setCookie(request, backCookie, back, { maxAge: 3_600 });
        return new Reply(page.status, page.body, { ...page.headers, 'Set-Cookie': cookie });
      },
    ),
    route(
      {
        ...contract,
        method: 'POST',
        path,
        bodyMode: 'form',
        body: Type.Object({
          username: Type.String(),
          password: Type.String(),
          password_again: text,
          token: text,
          email: text,
        }),
      },
      (request) => {
        requireSameOrigin(request.headers);
        return pages.begin(request.body, request.ip, returnPageOf(request));
      },
    ),
    route(
      {
        ...contract,
        method: 'GET',
        path: `${path}/continue`,
        query: Type.Object({ session: Type.String(), with: text }),
      },
      (request) => {
        const { session, with: added } = request.query;
        return pages.next({ session, withMail: added === 'email', ip: request.ip }, returnPageOf(request));
      },
    ),
    route(
      {
        ...contract,
        method: 'POST',
        path: `${path}/continue`,
        bodyMode: 'form',
        query: Type.Object({ with: text }),
        body: Type.Object({ session: Type.String() }),
      },
      ({ body, query, ip }) =>
        pages.submit(textFields(body), { session: body.session, withMail: query.with === 'email', ip }),
    ),
  ];
}
