import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { testImage } from '../../../test/support/inputs/images.ts';
import type { ReceivedMail } from '../../../test/support/network/mail-server.ts';
import type { TestUser } from '../../../test/support/servers/server.ts';
import { registerAdmin } from '../../../test/support/users/register-admin.ts';
import type { TestClient } from '../../../test/support/users/test-client.ts';
import {
  type AccountsOptions,
  type EmailOverrides,
  ServerWithMail,
} from '../../third-party-ids/test/server-with-mail.ts';
import { Clients, clientPath } from './clients.ts';
import { PushGateway } from './push-gateway.ts';

/** The jobs that mail notifications: one for each room, and one for each mail. */
const mailJobs = ['pushers/mail', 'mail/send'] as const;

interface Task {
  readonly status: string;
  /** When the task is due, in milliseconds since the epoch. */
  readonly timestamp_ms: number;
}

/** A server that mails notifications, and its clients. */
export class MailingServer {
  readonly homeserver: ServerWithMail;
  readonly clients: Clients;
  readonly #admin: TestClient;
  readonly #sentinel: Sentinel;

  private constructor(homeserver: ServerWithMail, clients: Clients, admin: TestClient, sentinel: Sentinel) {
    this.homeserver = homeserver;
    this.clients = clients;
    this.#admin = admin;
    this.#sentinel = sentinel;
  }

  static async start(database: 'sqlite' | 'postgres', email: EmailOverrides, accounts: AccountsOptions = {}) {
    const retention = { enabled: true } as never;
    const homeserver = await ServerWithMail.start(database, accounts, { email, rooms: { retention } });
    const clients = new Clients(homeserver.server);
    const admin = await registerAdmin(homeserver.server);
    return new MailingServer(homeserver, clients, admin, await Sentinel.start(clients));
  }

  async stop(): Promise<void> {
    await this.homeserver.stop();
    await this.#sentinel.gateway.stop();
  }

  /** Registers a user who receives mails. */
  async subscriber(name: string): Promise<TestUser> {
    const user = await this.homeserver.server.register(name);
    await this.homeserver.addAddress(user, `${name}@example.org`);
    await this.subscribe(user, `${name}@example.org`);
    return user;
  }

  async subscribe(user: TestUser, address: string): Promise<void> {
    const body = {
      kind: 'email',
      app_id: 'm.email',
      pushkey: address,
      app_display_name: 'Email Notifications',
      device_display_name: address,
      lang: 'en',
      data: {},
    };
    const { status, raw } = await this.clients.post('/pushers/set', user, body);
    assert.equal(status, 200, raw);
  }

  /** Registers a user with a validated mail address. */
  async registerWithAddress(username: string): Promise<TestUser> {
    const threepid_creds = await this.homeserver.validate('register', `${username}@example.org`, username);
    const body = { username, password: 'correct horse' };
    const { session } = (await this.homeserver.post('/register', body)).body;
    const auth = { type: 'm.login.email.identity', threepid_creds, session };
    const answer = await this.homeserver.post('/register', { ...body, auth });
    assert.equal(answer.status, 200, answer.raw);
    return {
      userId: String(answer.body['user_id']),
      deviceId: String(answer.body['device_id']),
      token: String(answer.body['access_token']),
    };
  }

  /** Creates a user with a mail address as an administrator. */
  async createByAdmin(username: string, address: string): Promise<void> {
    const { token } = this.#admin;
    const body = { password: 'correct horse', threepids: [{ medium: 'email', address }] };
    const path = `/_synapse/admin/v2/users/@${username}:test`;
    const { status, raw } = await this.homeserver.server.api('PUT', path, { token, body });
    assert.equal(status, 201, raw);
  }

  /** Uploads and sets an avatar of a user. @returns its URI */
  async uploadAvatar(user: TestUser): Promise<string> {
    const response = await fetch(`${this.homeserver.server.baseUrl}/_matrix/media/v3/upload`, {
      method: 'POST',
      headers: { authorization: `Bearer ${user.token}`, 'content-type': 'image/png' },
      body: await testImage(64, 64),
    });
    const { content_uri } = (await response.json()) as { content_uri: string };
    const path = clientPath(`/profile/${encodeURIComponent(user.userId)}/avatar_url`);
    await this.homeserver.server.api('PUT', path, { token: user.token, body: { avatar_url: content_uri } });
    // Requests the thumbnail before the clock is advanced, because the task that makes it would time out.
    const thumbnail = `/_matrix/client/v1/media/thumbnail/${content_uri.slice('mxc://'.length)}`;
    const query = { width: '96', height: '96', method: 'crop' };
    await this.homeserver.server.api('GET', thumbnail, { token: user.token, query });
    return content_uri;
  }

  /** Returns the mails about missed events to a user, without the mails that validate addresses. */
  mailsTo(name: string): ReceivedMail[] {
    return this.homeserver.mailServer.received.filter(
      ({ to, raw }) => to[0] === `${name}@example.org` && /^List-Unsubscribe:/m.test(raw),
    );
  }

  /** Advances the clock from job to job until a user has received this many mails. @returns the last of these mails */
  async mailTo(name: string, count = 1): Promise<ReceivedMail> {
    await this.#sentinel.notified();
    for (let due = await this.#nextJob(); this.mailsTo(name).length < count; due = await this.#nextJob()) {
      assert.ok(Number.isFinite(due), `no mail to ${name}`);
      this.homeserver.clock.advance(due - this.homeserver.clock.now());
    }
    return this.mailsTo(name)[count - 1]!;
  }

  /** Advances the clock by a duration, and runs each job at the time when it is due. */
  async wait(milliseconds: number): Promise<void> {
    await this.#sentinel.notified();
    const end = this.homeserver.clock.now() + milliseconds;
    for (let now = this.homeserver.clock.now(); now < end; now = this.homeserver.clock.now()) {
      this.homeserver.clock.advance(Math.min(await this.#nextJob(), end) - now);
    }
    await this.#nextJob();
  }

  /** Waits for the jobs that are due. @returns the time when the next job is due, or Infinity if there is none */
  async #nextJob(): Promise<number> {
    for (;;) {
      const tasks: Task[] = [];
      for (const kind of mailJobs) {
        const path = `/_synapse/admin/v1/scheduled_tasks?action_name=${encodeURIComponent(kind)}`;
        const { body, raw } = await this.homeserver.server.api('GET', path, { token: this.#admin.token });
        assert.ok(body['scheduled_tasks'], raw);
        tasks.push(...(body['scheduled_tasks'] as Task[]));
      }
      const due = tasks
        .filter(({ status }) => status !== 'failed')
        .map(({ status, timestamp_ms }) => (status === 'active' ? 0 : timestamp_ms));
      const next = Math.min(...due);
      if (next > this.homeserver.clock.now()) return next;
      // Pauses between checks, because each check sends two requests, which slow down the jobs.
      await sleep(20);
    }
  }
}

/**
 * A user with a push gateway. When the gateway is notified of an event, all earlier events are pending for the pushers
 * of the users whom they notify.
 */
class Sentinel {
  readonly gateway: PushGateway;
  readonly #clients: Clients;
  readonly #sender: TestUser;
  readonly #user: TestUser;
  readonly #roomId: string;

  private constructor(gateway: PushGateway, clients: Clients, users: [TestUser, TestUser], roomId: string) {
    this.gateway = gateway;
    this.#clients = clients;
    [this.#sender, this.#user] = users;
    this.#roomId = roomId;
  }

  static async start(clients: Clients): Promise<Sentinel> {
    const sender = await clients.server.register('sentinel.sender');
    const user = await clients.server.register('sentinel');
    const roomId = await clients.room(sender, [user]);
    return new Sentinel(await PushGateway.start(), clients, [sender, user], roomId);
  }

  /** Sends an event, and resolves when the gateway was notified of it. */
  async notified(): Promise<void> {
    // Ends the backoff of a request that has failed because the clock was advanced while it was being answered.
    const { status, raw } = await this.#clients.post('/pushers/set', this.#user, {
      kind: 'http',
      app_id: 'app',
      pushkey: 'sentinel',
      app_display_name: 'App',
      device_display_name: 'Phone',
      lang: 'en',
      data: { url: this.gateway.url(), format: 'event_id_only' },
    });
    assert.equal(status, 200, raw);
    const eventId = await this.#clients.say(this.#sender, this.#roomId, 'Are all earlier events pending?');
    await this.gateway.until(() => this.gateway.received.some(({ event_id }) => event_id === eventId));
  }
}
