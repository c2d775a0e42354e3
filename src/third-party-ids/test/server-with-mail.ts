import assert from 'node:assert/strict';
import { type ManualClock, manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { FakeResolver } from '../../../test/support/network/loopback.ts';
import { MailServer, type ReceivedMail } from '../../../test/support/network/mail-server.ts';
import { commonTestAuthority } from '../../../test/support/network/test-authority.ts';
import {
  type ApiAnswer,
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
} from '../../../test/support/servers/server.ts';
import type { DatabaseOptions } from '../../kernel/database/index.ts';

export type AccountsOptions = ConfigurationOverrides['accounts'];
export type EmailOverrides = NonNullable<NonNullable<ConfigurationOverrides['mail']>['email']>;

/** A page that the server has shown to a browser. */
export interface ShownPage {
  readonly status: number;
  readonly text: string;
  readonly location: string | null;
  readonly headers: Headers;
}

export const clientPath = (path: string) => `/_matrix/client/v3${path}`;

export const statusAndErrcode = ({ status, body }: ApiAnswer) => [status, body['errcode']];

/** A homeserver, and the mail server that receives its mails. */
export class ServerWithMail {
  readonly server: TestServer;
  readonly mailServer: MailServer;
  readonly clock: ManualClock;
  readonly resolver: FakeResolver;

  private constructor(
    server: TestServer,
    mailServer: MailServer,
    clock: ManualClock,
    resolver: FakeResolver,
  ) {
    this.server = server;
    this.mailServer = mailServer;
    this.clock = clock;
    this.resolver = resolver;
  }

  static async start(
    database: DatabaseOptions['kind'],
    accounts: AccountsOptions = {},
    { email = {}, ...more }: ConfigurationOverrides & { email?: EmailOverrides | null } = {},
  ): Promise<ServerWithMail> {
    const mailServer = await MailServer.start();
    const clock = manualClock();
    const resolver = new FakeResolver();
    resolver.hosts.set('id.example', ['127.0.0.1']);
    resolver.hosts.set('phones.example', ['127.0.0.1']);
    const smtp = { smtp_host: '127.0.0.1', smtp_port: mailServer.port, notif_from: 'no-reply@example.org' };
    const config = {
      outbound: { ip_range_whitelist: ['127.0.0.0/8'] },
      ...more,
      accounts,
      mail: { ...more.mail, email: email && { ...smtp, ...email } },
    };
    const authorities = [commonTestAuthority().pem];
    const server = await startTestServer({ database, clock, config, resolver, authorities });
    return new ServerWithMail(server, mailServer, clock, resolver);
  }

  async stop(): Promise<void> {
    await this.server.stop();
    await this.mailServer.stop();
  }

  post(path: string, body: object, token?: string): Promise<ApiAnswer> {
    return this.server.api('POST', clientPath(path), { body, ...(token !== undefined && { token }) });
  }

  /** Requests a validation mail. @param prefix the path before `/email/requestToken`, for example `register` */
  requestMail(prefix: string, email: string, more: object = {}): Promise<ApiAnswer> {
    return this.post(`/${prefix}/email/requestToken`, {
      client_secret: 'secret',
      email,
      send_attempt: 1,
      ...more,
    });
  }

  /** Requests a mail. @returns the session, and the link in the mail */
  async receiveLink(
    prefix: string,
    email: string,
    more: object = {},
  ): Promise<{ sid: string; link: string }> {
    const number = this.mailServer.received.length;
    const { status, body, raw } = await this.requestMail(prefix, email, more);
    assert.equal(status, 200, raw);
    const mail = await this.mailServer.mail(number);
    assert.deepEqual(mail.to, [email.trim().toLowerCase()]);
    return { sid: String(body['sid']), link: linkIn(mail) };
  }

  /**
   * Opens a link of a mail as a browser does, at the address that the server listens on.
   * @param form fields that are sent by `POST` to the path of the link; absent: the link is opened by `GET`
   */
  async open(link: string, form?: Record<string, string>): Promise<ShownPage> {
    const { pathname, search } = new URL(link);
    const response = await fetch(this.server.baseUrl + pathname + (form ? '' : search), {
      redirect: 'manual',
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
    });
    const { status, headers } = response;
    return { status, text: await response.text(), location: headers.get('location'), headers };
  }

  /** Validates an address through the link of a mail. @returns the credentials of the session */
  async validate(prefix: string, email: string, clientSecret = 'secret') {
    const { sid, link } = await this.receiveLink(prefix, email, { client_secret: clientSecret });
    const isReset = prefix === 'account/password';
    const opened = await this.open(link, isReset ? parametersOf(link) : undefined);
    assert.equal(opened.status, 200, opened.text);
    return { sid, client_secret: clientSecret };
  }

  /** Adds an address to the account of a user. */
  async addAddress(user: { userId: string; token: string }, email: string): Promise<void> {
    const credentials = await this.validate(
      'account/3pid',
      email,
      `add.${user.userId.replace(/[^a-z0-9]/g, '.')}`,
    );
    const { status, raw } = await this.addValidated(user, credentials);
    assert.equal(status, 200, raw);
  }

  /** Adds a validated address to the account of a user, who confirms with their password. */
  async addValidated(
    user: { userId: string; token: string },
    credentials: object,
    password = 'correct horse',
  ): Promise<ApiAnswer> {
    const challenge = await this.post('/account/3pid/add', credentials, user.token);
    assert.equal(challenge.status, 401, challenge.raw);
    const auth = {
      ...loginBody({ type: 'm.id.user', user: user.userId }, password),
      session: challenge.body['session'],
    };
    return this.post('/account/3pid/add', { ...credentials, auth }, user.token);
  }

  async addressesOf({ token }: { token: string }): Promise<Record<string, unknown>[]> {
    const { body } = await this.server.api('GET', clientPath('/account/3pid'), { token });
    return body['threepids'] as Record<string, unknown>[];
  }

  login(identifier: object, password = 'correct horse'): Promise<ApiAnswer> {
    return this.post('/login', loginBody(identifier, password));
  }
}

export const loginBody = (identifier: object, password: string) => ({
  type: 'm.login.password',
  identifier,
  password,
});

export const mailIdentifier = (address: string) => ({ type: 'm.id.thirdparty', medium: 'email', address });

/** Returns the link of a mail, after checking that both its text part and its HTML part contain the link. */
export function linkIn({ content }: ReceivedMail): string {
  const link = /https?:\/\/\S+/.exec(content.text ?? '')?.[0];
  assert.ok(link, content.text ?? '');
  assert.ok((content.html ?? '').replaceAll('&amp;', '&').includes(link), content.html);
  return link;
}

/** Returns the parameters of a link. The form on the page of the link sends them, too. */
export const parametersOf = (link: string) => Object.fromEntries(new URL(link).searchParams);
