import { Type } from 'typebox';
import type { RegistrationTokens } from '../../accounts/index.ts';
import { type Route, route } from '../../kernel/http/index.ts';
import { notFound } from '../../protocol/index.ts';
import { nothing, nullableInteger } from '../response-fields.ts';

const paths = {
  list: '/_server/admin/v1/registration_tokens',
  create: '/_server/admin/v1/registration_tokens/new',
  one: '/_server/admin/v1/registration_tokens/:token',
} as const;

/** Limits of a token. Null: any number of uses, or no expiry. */
const limits = { uses_allowed: Type.Optional(nullableInteger), expiry_time: Type.Optional(nullableInteger) };

const response = Type.Object({
  token: Type.String(),
  uses_allowed: nullableInteger,
  pending: Type.Integer(),
  completed: Type.Integer(),
  expiry_time: nullableInteger,
});

/** Lists, creates, shows, changes and deletes registration tokens. */
export function registrationTokenRoutes(tokens: RegistrationTokens): Route[] {
  return [
    route(
      {
        operationId: 'listRegistrationTokens',
        method: 'GET',
        path: paths.list,
        auth: 'admin',
        query: Type.Object({ valid: Type.Optional(Type.Boolean()) }),
        response: Type.Object({ registration_tokens: Type.Array(response) }),
      },
      async ({ query }) => ({ registration_tokens: await tokens.list(query.valid) }),
    ),
    route(
      {
        operationId: 'createRegistrationToken',
        method: 'POST',
        path: paths.create,
        auth: 'admin',
        body: Type.Object({
          ...limits,
          token: Type.Optional(Type.String()),
          length: Type.Optional(Type.Integer()),
        }),
        response,
      },
      ({ body }) => tokens.create(body),
    ),
    route(
      { operationId: 'getRegistrationToken', method: 'GET', path: paths.one, auth: 'admin', response },
      async ({ params: { token } }) => {
        const found = await tokens.find(token);
        if (found === undefined) throw notFound('No such registration token');
        return found;
      },
    ),
    route(
      {
        operationId: 'updateRegistrationToken',
        method: 'PUT',
        path: paths.one,
        auth: 'admin',
        body: Type.Object(limits),
        response,
      },
      ({ params: { token }, body }) => tokens.update(token, body),
    ),
    route(
      {
        operationId: 'deleteRegistrationToken',
        method: 'DELETE',
        path: paths.one,
        auth: 'admin',
        response: nothing,
      },
      async ({ params: { token } }) => {
        await tokens.remove(token);
        return {};
      },
    ),
  ];
}
