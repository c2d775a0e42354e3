import { Type } from 'typebox';
import { type Reply, type Route, route } from '../../kernel/http/index.ts';
import type { Pages } from '../../kernel/pages/index.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import { isJsonObject, type JsonObject, MatrixError } from '../../protocol/index.ts';
import type { AccountOptions } from '../account-options.ts';
import type { Login } from '../login/login.ts';
import type { PasswordChange } from '../passwords/password-change.ts';
import { toLoginDevice, toSessionResponse } from '../routes/session-response.ts';
import { passwordResetPageOf } from './password-reset-page.ts';
import { requireSameOrigin } from './same-origin.ts';

export interface LoginPageDeps {
  readonly login: Login;
  readonly passwordChange: PasswordChange;
  readonly pages: Pages;
  readonly randomness: Randomness;
  /** The content of `/.well-known/proto/client`. The login response contains it as well. */
  readonly wellKnown: JsonObject | undefined;
}

type Options = Pick<AccountOptions, 'server_name' | 'public_baseurl'>;

const paths = ['/_proto/static/client/login/', '/_proto/static/client/login'] as const;
const text = Type.String({ default: '' });
/** Parameters of `POST /login` that describe the device and the session. The other parameters are credentials. */
const device = { device_id: text, initial_device_display_name: text, refresh_token: text };

/**
 * The login page for users of clients that have no login form of their own. It hands the response of the login to the
 * client that shows the page: `window.matrixLogin.onLogin(response)`. Source: client-server API, "Login Fallback".
 */
export function loginPageRoutes(deps: LoginPageDeps, options: Options): Route[] {
  const contract = { path: paths, auth: 'none', errors: 'page' } as const;
  const show = (url: string, values: DeviceFields & Readonly<Record<string, unknown>>, status = 200) =>
    deps.pages.page(
      'login.html',
      { ...waysToLogIn(deps, options, values), myurl: url, ...values },
      { status },
    );
  return [
    route(
      { ...contract, method: 'GET', query: Type.Object({ ...device, loginToken: text }) },
      ({ query: { loginToken, ...values }, url }) =>
        show(pathOf(url), { ...values, login_token: loginToken }),
    ),
    route(
      {
        ...contract,
        method: 'POST',
        bodyMode: 'form',
        body: Type.Object({ ...device, username: text, password: text, login_token: text }),
      },
      async (request) => {
        requireSameOrigin(request.headers);
        const { password, ...fields } = request.body;
        try {
          return await logInFromPage(deps, { ...fields, password }, request.ip);
        } catch (error) {
          if (!(error instanceof MatrixError)) throw error;
          const values = { ...fields, login_token: '', error: error.message };
          return show(pathOf(request.url), values, error.status);
        }
      },
    ),
  ];
}

/** The parameters in `device`; those that the client has not given are empty. */
type DeviceFields = Readonly<Record<keyof typeof device, string>>;

/** The fields of the form on the login page. */
interface LoginFields extends DeviceFields {
  readonly username: string;
  readonly password: string;
  readonly login_token: string;
}

/** Logs the user in. @returns the page that hands the response to the client */
async function logInFromPage(
  { login, pages, randomness, wellKnown }: LoginPageDeps,
  fields: LoginFields,
  ip: string,
): Promise<Reply> {
  const { device_id, initial_device_display_name, refresh_token } = fields;
  const loginDevice = toLoginDevice({
    ...(device_id !== '' && { device_id }),
    ...(initial_device_display_name !== '' && { initial_device_display_name }),
    refresh_token: refresh_token === 'true',
  });
  const { userId, session, extraFields } = await login.login(loginBody(fields), loginDevice, {
    ip,
    authenticate: () => undefined,
  });
  const response = {
    ...extraFields,
    ...toSessionResponse(userId, session),
    ...(wellKnown && { well_known: wellKnown }),
  };
  const nonce = randomString(randomness, 24);
  return pages.page(
    'login_success.html',
    { response: JSON.stringify(response), script_nonce: nonce },
    { policy: { 'script-src': `'nonce-${nonce}'` } },
  );
}

/** Returns the body of `POST /login` for the submitted fields. */
function loginBody({ username, password, login_token: token }: LoginFields): JsonObject {
  if (token !== '') return { type: 'm.login.token', token };
  const isAddress = !username.startsWith('@') && username.includes('@');
  const identifier = isAddress
    ? { type: 'm.id.thirdparty', medium: 'email', address: username }
    : { type: 'm.id.user', user: username };
  return { type: 'm.login.password', identifier, password };
}

/**
 * Returns values of the page: whether it has a field for a password, and the links to identity providers and to a new
 * password. Identity providers send the user back to the page with the parameters of the device.
 */
function waysToLogIn(
  { login, passwordChange }: LoginPageDeps,
  options: Options,
  fields: DeviceFields,
): Readonly<Record<string, unknown>> {
  const flows = login.flows();
  const base = options.public_baseurl ?? `https://${options.server_name}/`;
  const url = new URL('_matrix/static/client/login/', base);
  for (const name of Object.keys(device) as (keyof DeviceFields)[]) {
    if (fields[name] !== '') url.searchParams.set(name, fields[name]);
  }
  const returnUrl = encodeURIComponent(url.href);
  const sso = flows.find(({ type }) => type === 'm.login.sso');
  const providers = Array.isArray(sso?.['identity_providers']) ? sso['identity_providers'] : [];
  return {
    server_name: options.server_name,
    reset_url: passwordResetPageOf(passwordChange),
    with_password: flows.some(({ type }) => type === 'm.login.password'),
    providers: providers.filter(isJsonObject).map(({ id, name }) => ({
      name,
      url: `/_matrix/client/v3/login/sso/redirect/${encodeURIComponent(String(id))}?redirectUrl=${returnUrl}`,
    })),
  };
}

const pathOf = (url: string) => url.split('?', 1)[0] ?? url;
