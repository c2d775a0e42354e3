import type { AccountsSlice } from '../../accounts/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Reply, Requester } from '../../kernel/http/index.ts';
import type { Pages } from '../../kernel/pages/index.ts';
import type { Profiles } from '../../profiles/index.ts';
import { notFound } from '../../protocol/index.ts';
import type { ThirdPartyIds } from '../../third-party-ids/index.ts';
import type { BrowserSession, BrowserSessions } from '../browser/browser-sessions.ts';
import type { Clients } from '../clients/clients.ts';
import type { CrossSigningResets } from '../cross-signing-resets.ts';
import type { OAuthSessions } from '../tokens/oauth-sessions.ts';

/** The mail addresses of accounts, and how users add one. */
export type AccountMails = Pick<ThirdPartyIds, 'addresses' | 'requests' | 'validated'>;

export interface AccountPagesDeps {
  readonly accountsSlice: Pick<
    AccountsSlice,
    'accounts' | 'devices' | 'passwordChange' | 'thirdPartyIds' | 'serverName' | 'login'
  >;
  readonly profiles: Pick<Profiles, 'read' | 'set'>;
  readonly mails: AccountMails | undefined;
  readonly browsers: BrowserSessions;
  readonly sessions: OAuthSessions;
  readonly clients: Clients;
  readonly resets: CrossSigningResets;
  readonly pages: Pages;
  readonly clock: Clock;
  /** Whether users can change their passwords. */
  readonly canChangePassword: boolean;
  /** The option `enable_3pid_changes`, on a server that sends mail. */
  readonly canAddAddresses: boolean;
  /** The option `enable_3pid_changes`. */
  readonly canRemoveAddresses: boolean;
}

/**
 * Milliseconds after signing in during which a user can make dangerous changes; after that the user must sign
 * in again, so that a stolen browser session does not suffice.
 */
const freshness = 600_000;

/** The pages on which users manage their account. Source: client-server API, "Account management". */
export class AccountPages {
  readonly #deps: AccountPagesDeps;

  constructor(deps: AccountPagesDeps) {
    this.#deps = deps;
  }

  /** Whether the user has signed in so recently that a dangerous change needs no other confirmation. */
  isFresh({ authenticatedAt }: BrowserSession): boolean {
    return this.#deps.clock.now() - authenticatedAt < freshness;
  }

  /** Shows the account, with a message about a change that was made or has failed. */
  async overview(session: BrowserSession, message: AccountMessage = {}): Promise<Reply> {
    const { profiles, mails, accountsSlice } = this.#deps;
    const { userId } = session;
    const profile = await profiles.read(userId);
    const user = await accountsSlice.accounts.getUser(userId);
    return this.#page('oauth_account.html', session, message, {
      display_name: typeof profile['displayname'] === 'string' ? profile['displayname'] : '',
      addresses: (await mails?.addresses.list(userId)) ?? [],
      can_add_addresses: this.#deps.canAddAddresses,
      can_remove_addresses: this.#deps.canRemoveAddresses,
      can_change_password: this.#deps.canChangePassword && user?.hasPassword === true,
    });
  }

  /** Shows the sessions of a user in all apps. */
  async devices(session: BrowserSession, message: AccountMessage = {}): Promise<Reply> {
    const clients = await this.#deps.sessions.clientsOf(session.userId);
    const devices = await this.#deps.accountsSlice.devices.list(session.userId);
    return this.#page('oauth_account_devices.html', session, message, {
      devices: devices
        .filter(({ isDehydrated }) => !isDehydrated)
        .toSorted((one, other) => (other.lastSeenAt ?? 0) - (one.lastSeenAt ?? 0))
        .map((device) => ({ ...shown(device), by_oauth: clients.has(device.deviceId) })),
    });
  }

  /**
   * Shows one session, with a button to end it.
   * @throws MatrixError M_NOT_FOUND
   */
  async device(session: BrowserSession, deviceId: string): Promise<Reply> {
    const device = await this.#deps.accountsSlice.devices.get(session.userId, deviceId);
    const clientId = (await this.#deps.sessions.clientsOf(session.userId)).get(deviceId);
    const client = clientId === undefined ? undefined : await this.#deps.clients.find(clientId);
    return this.#page(
      'oauth_account_device.html',
      session,
      {},
      {
        device: shown(device),
        client: client?.metadata,
        client_host: client && new URL(client.metadata.client_uri).host,
      },
    );
  }

  /** Shows a page that only asks for a confirmation. */
  confirmation(session: BrowserSession, template: string, message: AccountMessage = {}): Promise<Reply> {
    return this.#page(template, session, message, {});
  }

  /** Asks the user to open the link in a mail that was sent. */
  mailSent(session: BrowserSession, values: Readonly<Record<string, string>>): Promise<Reply> {
    return this.#page('oauth_account_mail.html', session, {}, values);
  }

  /** Returns the user of a browser as the requester of a change. @throws MatrixError M_NOT_FOUND */
  async requester({ userId }: BrowserSession): Promise<Requester> {
    const user = await this.#deps.accountsSlice.accounts.getUser(userId);
    if (user === undefined) throw notFound('No such user');
    const { isAdmin, isGuest, isSuspended, isShadowBanned } = user;
    return {
      userId,
      isAdmin,
      isGuest,
      isSuspended,
      isShadowBanned,
      deviceId: undefined,
      appservice: undefined,
      tokenId: undefined,
    };
  }

  #page(
    template: string,
    session: BrowserSession,
    { done, error, status = 200 }: AccountMessage,
    values: Readonly<Record<string, unknown>>,
  ): Promise<Reply> {
    return this.#deps.pages.page(
      template,
      {
        server_name: this.#deps.accountsSlice.serverName,
        user_id: session.userId,
        form_token: session.formToken,
        continue: '/_synapse/client/account',
        done,
        error,
        ...values,
      },
      { status },
    );
  }
}

/** A message that a page shows above its content. */
export interface AccountMessage {
  /** Says what was changed. */
  readonly done?: string;
  /** Says why a change has failed. */
  readonly error?: string;
  /** HTTP status of the page; by default 200. */
  readonly status?: number;
}

interface ShownDevice {
  readonly deviceId: string;
  readonly displayName: string | undefined;
  readonly lastSeenAt: number | undefined;
  readonly lastSeenIp: string | undefined;
}

const shown = ({ deviceId, displayName, lastSeenAt, lastSeenIp }: ShownDevice) => ({
  id: deviceId,
  name: displayName ?? deviceId,
  last_seen:
    lastSeenAt === undefined ? '' : new Date(lastSeenAt).toISOString().slice(0, 16).replace('T', ' '),
  ip: lastSeenIp ?? '',
});
