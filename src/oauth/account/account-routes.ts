import { type Static, type TProperties, Type } from 'typebox';
import { Reply, type Route, type RouteRequest, redirect, route } from '../../kernel/http/index.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import { forbidden, invalidParam, MatrixError } from '../../protocol/index.ts';
import type { BrowserSession } from '../browser/browser-sessions.ts';
import { requireFormToken } from '../browser/own-pages.ts';
import { redirectToSignIn, redirectToSignInAgain } from '../browser/sign-in-routes.ts';
import { pagePaths } from '../endpoints.ts';
import { type AccountMessage, AccountPages, type AccountPagesDeps } from './account-pages.ts';

const text = Type.String({ default: '', maxLength: 1_000 });
const home = '/_synapse/client/account';

/**
 * The page that each action of the account page opens. Actions have no prefix `org.matrix.` here, because early clients
 * leave it out. MSC4191 defines the names with `session`. Any other action, for instance `profile`, opens the overview.
 */
const actions: ReadonlyMap<string, 'devices' | 'device' | 'reset' | 'deactivate'> = new Map([
  ['devices_list', 'devices'],
  ['sessions_list', 'devices'],
  ['device_view', 'device'],
  ['session_view', 'device'],
  ['device_delete', 'device'],
  ['session_end', 'device'],
  ['cross_signing_reset', 'reset'],
  ['account_deactivate', 'deactivate'],
]);

/** Pages that require that the user has signed in recently. */
const needsRecentSignIn: ReadonlySet<string> = new Set(['reset', 'deactivate']);

type PageRequest = Pick<RouteRequest, 'cookies' | 'isSecure' | 'ip' | 'url'>;

/** The pages on which users manage their account, and their forms. */
export function accountPageRoutes(deps: AccountPagesDeps & { readonly randomness: Randomness }): Route[] {
  const pages = new AccountPages(deps);
  const { devices, passwordChange } = deps.accountsSlice;
  const form = formsOf(deps, pages);
  const overview = { page: pages.overview.bind(pages) };
  return [
    pageRoute(deps, pages),
    form('display_name', { display_name: text }, overview, async (session, { display_name: name }) => {
      await deps.profiles.set(await pages.requester(session), session.userId, 'displayname', name);
      return 'Your name has been changed';
    }),
    form(
      'end_device',
      { device_id: text },
      { page: pages.devices.bind(pages) },
      async ({ userId }, { device_id: deviceId }) => {
        await devices.get(userId, deviceId);
        await devices.remove(userId, [deviceId]);
        return 'The session has ended';
      },
    ),
    form(
      'password',
      { new_password: text, new_password_again: text, logout_devices: text },
      { ...overview, needsRecentSignIn: true },
      async (session, body, request) => {
        if (body.new_password !== body.new_password_again)
          throw invalidParam('The passwords are not the same');
        if (!deps.canChangePassword) throw forbidden('Passwords cannot be changed on this server');
        const requester = await pages.requester(session);
        await passwordChange.change(requester, body.new_password, body.logout_devices !== '');
        // A new password signs all browsers out, so the browser of this request is signed in again.
        const { userId, providerSession } = session;
        const cookie = await deps.browsers.open(request, { userId, providerSession, isFresh: true });
        const headers = { 'Set-Cookie': cookie };
        return redirect(home, 303, headers);
      },
    ),
    ...(deps.mails === undefined ? [] : addressForms(deps, deps.mails, pages, form)),
    ...confirmedForms(deps, pages, form),
  ];
}

/**
 * Returns the function that makes the route of a form: it checks the session and the form, and shows errors on the page
 * with the form.
 */
function formsOf(deps: AccountPagesDeps, pages: AccountPages) {
  return <P extends TProperties>(
    path: string,
    fields: P,
    options: FormOptions,
    change: (
      session: BrowserSession,
      body: Static<ReturnType<typeof Type.Object<P>>>,
      request: PageRequest,
    ) => Promise<Reply | string>,
  ): Route =>
    route(
      {
        method: 'POST',
        path: `${pagePaths.account}/${path}`,
        auth: 'none',
        errors: 'page',
        bodyMode: 'form',
        body: Type.Object({ ...fields, form_token: Type.String({ maxLength: 100 }) }),
      },
      async (request) => {
        const session = await deps.browsers.find(request);
        if (session === undefined) return redirectToSignIn(home);
        const body = request.body as Static<ReturnType<typeof Type.Object<P>>> & { form_token: string };
        requireFormToken(session, body.form_token);
        if (options.needsRecentSignIn && !pages.isFresh(session))
          return redirectToSignInAgain(home, session.userId);
        try {
          const result = await change(session, body, request as PageRequest);
          return result instanceof Reply ? result : await options.page(session, { done: result });
        } catch (error) {
          if (!(error instanceof MatrixError)) throw error;
          return options.page(session, { error: error.message, status: error.status });
        }
      },
    );
}

/** Returns the route that shows the page of an action. */
function pageRoute({ browsers }: AccountPagesDeps, pages: AccountPages): Route {
  return route(
    {
      method: 'GET',
      path: pagePaths.account,
      auth: 'none',
      errors: 'page',
      query: Type.Object({ action: text, device_id: text }),
    },
    async (request) => {
      const { action, device_id: deviceId } = request.query;
      const session = await browsers.find(request);
      if (session === undefined) return redirectToSignIn(request.url);
      const page = actions.get(action.replace(/^org\.matrix\./, ''));
      if (page !== undefined && needsRecentSignIn.has(page) && !pages.isFresh(session)) {
        return redirectToSignInAgain(request.url, session.userId);
      }
      if (page === 'device' && deviceId !== '') return pages.device(session, deviceId);
      if (page === 'devices' || page === 'device') return pages.devices(session);
      if (page === 'reset') return pages.confirmation(session, 'oauth_account_reset.html');
      if (page === 'deactivate') return pages.confirmation(session, 'oauth_account_deactivate.html');
      return pages.overview(session);
    },
  );
}

interface FormOptions {
  /** Whether the user must have signed in recently; by default not. */
  readonly needsRecentSignIn?: boolean;
  /** Returns the page with the form, with a message about the change or its failure. */
  readonly page: (session: BrowserSession, message: AccountMessage) => Promise<Reply>;
}

/** Makes the route of a form whose fields are texts. */
type Form = (
  path: string,
  fields: Record<string, typeof text>,
  options: FormOptions,
  change: (
    session: BrowserSession,
    body: Record<string, string>,
    request: PageRequest,
  ) => Promise<Reply | string>,
) => Route;

/** The forms of pages that only ask for a confirmation. */
function confirmedForms(deps: AccountPagesDeps, pages: AccountPages, form: Form): Route[] {
  const { accounts, thirdPartyIds } = deps.accountsSlice;
  return [
    form(
      'cross_signing_reset',
      {},
      {
        needsRecentSignIn: true,
        page: (session, message) => pages.confirmation(session, 'oauth_account_reset.html', message),
      },
      async ({ userId }) => {
        await deps.resets.allow(userId);
        return 'Go back to the app, and continue there within 10 minutes';
      },
    ),
    form(
      'deactivate',
      { confirmed_user_id: text, erase: text },
      {
        needsRecentSignIn: true,
        page: (session, message) => pages.confirmation(session, 'oauth_account_deactivate.html', message),
      },
      async ({ userId }, { confirmed_user_id: confirmed = '', erase = '' }, request) => {
        if (confirmed.trim() !== userId) throw invalidParam(`Enter ${userId} to confirm`);
        const afterCheck = () => thirdPartyIds.unpublishAll(userId, undefined);
        await accounts.deactivate(userId, { erase: erase !== '', byAdmin: false, afterCheck });
        const cookie = await deps.browsers.close(request);
        const values = { server_name: deps.accountsSlice.serverName, user_id: userId };
        return deps.pages.page('oauth_account_deactivated.html', values, {
          headers: { 'Set-Cookie': cookie },
        });
      },
    ),
  ];
}

/** The forms with which a user adds and removes mail addresses. */
function addressForms(
  deps: AccountPagesDeps & { readonly randomness: Randomness },
  { addresses, requests, validated }: NonNullable<AccountPagesDeps['mails']>,
  pages: AccountPages,
  form: Form,
): Route[] {
  const options = { needsRecentSignIn: true, page: pages.overview.bind(pages) };
  const disabled = () => forbidden('Addresses cannot be changed on this server');
  return [
    form('add_address', { email: text }, options, async (session, { email = '' }, { ip }) => {
      if (!deps.canAddAddresses) throw disabled();
      const secret = randomString(deps.randomness, 32);
      const body = { client_secret: secret, email, send_attempt: 1 };
      const sid = await requests.email('add_threepid', body, ip);
      return pages.mailSent(session, { email, sid, client_secret: secret });
    }),
    form(
      'confirm_address',
      { email: text, sid: text, client_secret: text },
      options,
      async (session, { email = '', sid = '', client_secret: clientSecret = '' }) => {
        if (!deps.canAddAddresses) throw disabled();
        const validatedSession = await validated.find('email', { sid, clientSecret });
        if (validatedSession?.purpose !== 'add_threepid') {
          return pages.mailSent(session, {
            email,
            sid,
            client_secret: clientSecret,
            error: 'The link in the mail has not been opened yet, or it has expired',
          });
        }
        await addresses.add(session.userId, validatedSession);
        return 'The address has been added';
      },
    ),
    form('remove_address', { medium: text, address: text }, options, async ({ userId }, body) => {
      if (!deps.canRemoveAddresses) throw disabled();
      await addresses.remove(userId, body['medium'] ?? '', body['address'] ?? '');
      return 'The address has been removed';
    }),
  ];
}
