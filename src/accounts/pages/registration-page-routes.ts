import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { textFields } from './fallback-routes.ts';
import type { RegistrationPages } from './registration-pages.ts';
import { requireSameSite } from './same-site.ts';

const path = '/_server/client/register';
const text = Type.String({ default: '' });

/** The registration page, and the pages of the stages that follow. */
export function registrationPageRoutes(pages: RegistrationPages): Route[] {
  const contract = { auth: 'none', errors: 'page' } as const;
  return [
    route({ ...contract, method: 'GET', path, query: Type.Object({ token: text }) }, ({ query }) =>
      pages.show(query.token),
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
        requireSameSite(request.headers);
        return pages.begin(request.body, request.ip);
      },
    ),
    route(
      {
        ...contract,
        method: 'GET',
        path: `${path}/continue`,
        query: Type.Object({ session: Type.String(), with: text }),
      },
      ({ query, ip }) => pages.next({ session: query.session, withMail: query.with === 'email', ip }),
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
