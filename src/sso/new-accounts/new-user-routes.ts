import { Type } from 'typebox';
import { requireSameOrigin } from '../../accounts/index.ts';
import { type Reply, type Route, route } from '../../kernel/http/index.ts';
import type { Pages } from '../../kernel/pages/index.ts';
import { MatrixError } from '../../protocol/index.ts';
import { maxEmails } from '../bounded-profile.ts';
import type { BrowserLogins } from '../browser-logins/browser-logins.ts';
import type { BrowserRequest } from '../browser-logins/continuation.ts';
import type { IdentityProvider, RemoteUser } from '../browser-logins/identity-provider.ts';
import { LoginFailure } from '../browser-logins/login-failure.ts';
import type { NewUser } from '../browser-logins/login-sessions.ts';
import { choosesName } from './new-user-steps.ts';
import type { ProviderAccounts } from './provider-accounts.ts';

export interface NewUserRoutesDeps {
  readonly logins: BrowserLogins;
  readonly accounts: ProviderAccounts;
  readonly pages: Pages;
  readonly serverName: string;
  /** The terms that new users must accept. */
  readonly terms: { readonly version: string; readonly url: string } | undefined;
}

const page = { auth: 'none', errors: 'page' } as const;
const query = Type.Object({ session: Type.String() });
const text = Type.String({ default: '', maxLength: 1000 });

/** Pages for new users: choosing a user name, and accepting the terms. */
export function newUserRoutes(deps: NewUserRoutesDeps): Route[] {
  const { logins } = deps;
  const answerFailures = async (work: () => Promise<Reply>) => {
    try {
      return await work();
    } catch (error) {
      return logins.failed(error);
    }
  };
  const details = { ...page, path: '/_server/client/pick_username/account_details', query };
  const consent = { ...page, path: '/_server/client/new_user_consent', query };
  return [
    route({ ...details, method: 'GET' }, (request) =>
      answerFailures(() => detailsPage(deps, request, request.query.session)),
    ),
    route(
      {
        ...details,
        method: 'POST',
        bodyMode: 'form',
        body: Type.Object({
          username: text,
          use_display_name: text,
          use_avatar: text,
          use_email: Type.Array(Type.String(), { default: [], maxItems: maxEmails }),
        }),
      },
      (request) =>
        answerFailures(async () => {
          requireSameOrigin(request.headers);
          return submitDetails(deps, request, request.query.session, request.body);
        }),
    ),
    route(
      {
        method: 'GET',
        path: '/_server/client/pick_username/check',
        auth: 'none',
        query: Type.Object({ session: Type.Optional(Type.String()), username: Type.String() }),
      },
      async (request) => {
        newUserWithChoice(logins, request, request.query.session ?? '');
        return availability(deps.accounts, request.query.username);
      },
    ),
    route({ ...consent, method: 'GET' }, (request) =>
      answerFailures(() => consentPage(deps, request, request.query.session)),
    ),
    route(
      { ...consent, method: 'POST', bodyMode: 'form', body: Type.Object({ accepted_version: text }) },
      (request) =>
        answerFailures(async () => {
          requireSameOrigin(request.headers);
          return submitConsent(deps, request, request.query.session, request.body.accepted_version);
        }),
    ),
  ];
}

interface Details {
  readonly username: string;
  readonly use_display_name: string;
  readonly use_avatar: string;
  readonly use_email: readonly string[];
}

/**
 * Returns the new user of a login, if the user may choose a user name.
 * @throws LoginFailure for an unknown login, and when the provider decides the name
 */
function newUserWithChoice(logins: BrowserLogins, request: BrowserRequest, session: string) {
  const found = logins.newUser(request, session);
  if (!choosesName(found.newUser.remote)) {
    throw new LoginFailure('no_choice', 'The identity provider decides your user name', { status: 403 });
  }
  return found;
}

/** Returns whether a name is free (`available`), or why no account may have it (`error`). */
async function availability(accounts: ProviderAccounts, name: string): Promise<object> {
  try {
    await accounts.checkName(name);
    return { available: true };
  } catch (error) {
    if (!(error instanceof MatrixError)) throw error;
    return error.errcode === 'M_USER_IN_USE' ? { available: false } : { error: error.message };
  }
}

async function submitDetails(
  deps: NewUserRoutesDeps,
  request: BrowserRequest,
  session: string,
  fields: Details,
): Promise<Reply> {
  const { accounts, logins } = deps;
  const { newUser } = newUserWithChoice(logins, request, session);
  try {
    await accounts.checkName(fields.username);
  } catch (error) {
    if (!(error instanceof MatrixError)) throw error;
    return detailsPage(deps, request, session, { ...fields, error: error.message }, error.status);
  }
  const remote = chosen(newUser.remote, fields);
  return logins.continueWith(request, session, { ...newUser, remote, localpart: fields.username });
}

async function submitConsent(
  deps: NewUserRoutesDeps,
  request: BrowserRequest,
  session: string,
  accepted: string,
): Promise<Reply> {
  const { newUser } = deps.logins.newUser(request, session);
  if (accepted !== deps.terms?.version) return consentPage(deps, request, session, 400);
  return deps.logins.continueWith(request, session, { ...newUser, accepted });
}

/** Returns the user without the display name, picture and addresses that the user has not selected. */
function chosen(remote: RemoteUser, fields: Details): RemoteUser {
  const { displayName, emails = [], picture, ...rest } = remote;
  return {
    ...rest,
    displayName: fields.use_display_name === '' ? undefined : displayName,
    picture: fields.use_avatar === '' ? undefined : picture,
    emails: emails.filter((email) => fields.use_email.includes(email)),
  };
}

function detailsPage(
  { logins, pages, serverName }: NewUserRoutesDeps,
  request: BrowserRequest,
  session: string,
  entered?: Details & { readonly error: string },
  status = 200,
): Promise<Reply> {
  const { newUser, provider, formTargets } = newUserWithChoice(logins, request, session);
  const { remote } = newUser;
  const values = {
    server_name: serverName,
    idp: shownProvider(provider),
    user_attributes: {
      localpart: entered?.username ?? remote.localpart ?? '',
      confirm_localpart: remote.confirmsLocalpart === true,
      display_name: remote.displayName ?? '',
      emails: remote.emails ?? [],
      avatar_url: remote.picture ?? '',
    },
    error: entered?.error,
  };
  const policy = { 'form-action': `'self' ${formTargets}`.trimEnd() };
  return pages.page('sso_auth_account_details.html', values, { status, policy });
}

function consentPage(
  { logins, pages, serverName, terms }: NewUserRoutesDeps,
  request: BrowserRequest,
  session: string,
  status = 200,
): Promise<Reply> {
  const { newUser, provider, formTargets } = logins.newUser(request, session);
  if (terms === undefined) throw new LoginFailure('no_terms', 'This server has no terms to accept');
  const values = {
    server_name: serverName,
    idp: shownProvider(provider),
    consent_version: terms.version,
    terms_url: terms.url,
    user_id: userIdOf(newUser, serverName),
    user_profile: { display_name: newUser.remote.displayName ?? '', avatar_url: '' },
    error: status === 200 ? undefined : 'Please agree to the terms to continue',
  };
  const policy = { 'form-action': `'self' ${formTargets}`.trimEnd() };
  return pages.page('sso_new_user_consent.html', values, { status, policy });
}

const userIdOf = ({ localpart, remote }: NewUser, serverName: string) =>
  `@${localpart ?? remote.localpart}:${serverName}`;

const shownProvider = ({ id, name, icon, brand }: IdentityProvider) => ({
  idp_id: id,
  idp_name: name,
  idp_icon: icon,
  idp_brand: brand,
});
