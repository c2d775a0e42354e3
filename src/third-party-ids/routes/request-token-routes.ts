import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { forbidden } from '../../protocol/index.ts';
import type { Purpose } from '../validation/purpose.ts';
import type { TokenRequests } from '../validation/token-requests.ts';

/**
 * Fields of all requests. `id_server` and `id_access_token` have no effect, because this server validates addresses
 * itself.
 */
const shared = {
  client_secret: Type.String({ maxLength: 255 }),
  send_attempt: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  next_link: Type.Optional(Type.String({ maxLength: 2_048 })),
  id_server: Type.Optional(Type.String()),
  id_access_token: Type.Optional(Type.String()),
};

const mailBody = Type.Object({ ...shared, email: Type.String({ maxLength: 500 }) });
const phoneBody = Type.Object({
  ...shared,
  country: Type.String({ maxLength: 2 }),
  phone_number: Type.String({ maxLength: 50 }),
});

/** Maximum bytes of a request; small, because requests need no authentication. */
const bodyLimit = 16_384;

const paths = [
  {
    prefix: 'register',
    purpose: 'registration',
    email: 'requestTokenToRegisterEmail',
    msisdn: 'requestTokenToRegisterMSISDN',
  },
  {
    prefix: 'account/password',
    purpose: 'password_reset',
    email: 'requestTokenToResetPasswordEmail',
    msisdn: 'requestTokenToResetPasswordMSISDN',
  },
  {
    prefix: 'account/3pid',
    purpose: 'add_threepid',
    email: 'requestTokenTo3PIDEmail',
    msisdn: 'requestTokenTo3PIDMSISDN',
  },
] as const;

/** Path of the endpoint that takes the tokens of text messages. */
export const phoneSubmitPath = '/_matrix/client/unstable/add_threepid/msisdn/submit_token';

/**
 * The `requestToken` endpoints. Source: client-server API, "Account registration", "Password management" and
 * "Adding account administrative contact information".
 * @param canAdd whether users may change their addresses: `enable_3pid_changes`
 */
export function requestTokenRoutes(requests: TokenRequests, baseUrl: string, canAdd: boolean): Route[] {
  const admit = (purpose: Purpose) => {
    if (purpose === 'add_threepid' && !canAdd) throw changesDisabled();
  };
  return paths.flatMap(({ prefix, purpose, email, msisdn }) => {
    const contract = { method: 'POST', auth: 'none', bodyLimit } as const;
    const pathsOf = (medium: string) =>
      ['v3', 'r0'].map((version) => `/_proto/client/${version}/${prefix}/${medium}/requestToken`);
    return [
      route(
        {
          ...contract,
          operationId: email,
          path: pathsOf('email'),
          body: mailBody,
          response: Type.Object({ sid: Type.String() }),
        },
        async ({ body, ip }) => {
          admit(purpose);
          return { sid: await requests.email(purpose, body, ip) };
        },
      ),
      route(
        {
          ...contract,
          operationId: msisdn,
          path: pathsOf('msisdn'),
          body: phoneBody,
          response: Type.Object({ sid: Type.String(), submit_url: Type.String() }),
        },
        async ({ body, ip }) => {
          admit(purpose);
          const sid = await requests.msisdn(purpose, body, ip);
          return { sid, submit_url: `${baseUrl}${phoneSubmitPath}` };
        },
      ),
    ];
  });
}

/** Returns the error of a request when the option `enable_3pid_changes` is off. */
export const changesDisabled = () => forbidden('Addresses cannot be changed on this server');
