/**
 * A bridge between rooms and the channels of an IRC network, on the `Bridge` class of matrix-appservice-bridge. It runs in a
 * process of its own: `node irc-bridge.ts SETTINGS`, with `BridgeSettings` as JSON. It prints a line when it is ready.
 */
import './without-native-crypto.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppService } from 'matrix-appservice';
import { Bridge, type Intent, Logger } from 'matrix-appservice-bridge';
import { type BridgeSettings, bridgeNick, killingText } from './irc-bridge-settings.ts';
import { IrcConnection } from './irc-connection.ts';
import { Journal, type ReceivedEvent, type ReceivedMessage } from './journal.ts';

/** Milliseconds between two attempts to reach the homeserver. */
const retryDelay = 100;

/** Repeats a request until it succeeds. */
async function retried<T>(request: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await request();
    } catch {
      await sleep(retryDelay);
    }
  }
}

const channelOf = (alias: string) => `#${alias.slice('#irc_'.length).split(':')[0]}`;

const ircProtocol = {
  user_fields: ['nickname'],
  location_fields: ['channel'],
  icon: 'mxc://irc.test/icon',
  field_types: {
    nickname: { regexp: '[^#]+', placeholder: 'nickname' },
    channel: { regexp: '#.+', placeholder: '#channel' },
  },
  instances: [],
};

interface RoomMessage {
  readonly type: string;
  readonly event_id: string;
  readonly room_id: string;
  readonly sender: string;
  readonly content: { readonly body?: unknown };
}

class IrcBridge {
  readonly #settings: BridgeSettings;
  readonly #journal: Journal;
  readonly #irc: IrcConnection;
  readonly #bridge: Bridge;
  /** Ids of the events and messages that this process relays or has relayed. */
  readonly #taken = new Set<string>();
  /** The end of the queue of messages to IRC. */
  #toIrc: Promise<void> = Promise.resolve();
  /** The end of the queue of messages to rooms. */
  #toRooms: Promise<void> = Promise.resolve();

  constructor(settings: BridgeSettings, irc: IrcConnection) {
    this.#settings = settings;
    this.#journal = new Journal(settings.journal);
    this.#irc = irc;
    this.#bridge = new Bridge({
      registration: settings.registration,
      homeserverUrl: settings.homeserverUrl,
      domain: settings.domain,
      disableStores: true,
      disableContext: true,
      suppressEcho: true,
      controller: {
        onEvent: () => this.#relayPending(),
        onUserQuery: () => ({}),
        onAliasQuery: (alias, localpart) => ({
          creationOpts: { room_alias_name: localpart, preset: 'public_chat', name: channelOf(alias) },
        }),
        onAliasQueried: (alias, roomId) => this.#openPortal(roomId, channelOf(alias)),
        thirdPartyLookup: {
          protocols: ['irc'],
          getProtocol: () => ircProtocol,
          getLocation: (_protocol, { channel }) => [
            {
              alias: `#irc_${String(channel).slice(1)}:${settings.domain}`,
              protocol: 'irc',
              fields: { channel },
            },
          ],
        },
      },
    });
  }

  async run(): Promise<void> {
    const { homeserverToken, port } = this.#settings;
    const service = new AppService({ homeserverToken });
    // Events are stored before the listener of `Bridge` sees them and before the transaction is answered.
    service.on('event', (event) => this.#store(event as unknown as RoomMessage));
    await this.#bridge.initialise();
    for (const { channel } of this.#journal.portals) await this.#irc.join(channel);
    this.#irc.on('message', (message) => {
      this.#journal.add({ kind: 'message', id: `${process.pid}.${this.#journal.size}`, ...message });
      this.#relayPending();
    });
    this.#relayPending();
    await this.#bridge.listen(port, '127.0.0.1', 10, service);
    // Any request of a bridge ends the backoff in which the homeserver sends no transactions to the bridge.
    await retried(() => this.#bridge.getIntent().matrixClient.getWhoAmI());
  }

  async #openPortal(roomId: string, channel: string): Promise<void> {
    this.#journal.add({ kind: 'portal', roomId, channel });
    await this.#irc.join(channel);
  }

  #store({ type, event_id: id, room_id: roomId, sender, content: { body } }: RoomMessage): void {
    if (type !== 'm.room.message' || sender.startsWith('@irc_')) return;
    const isRepeated = this.#journal.events.some((event) => event.id === id);
    this.#journal.add({ kind: 'event', run: process.pid, id, roomId, sender, text: String(body) });
    if (body === killingText && !isRepeated) process.kill(process.pid, 'SIGKILL');
  }

  /** Queues the received events and messages that are not relayed yet. */
  #relayPending(): void {
    for (const entry of this.#journal.pending()) {
      if (this.#taken.has(entry.id)) continue;
      this.#taken.add(entry.id);
      if (entry.kind === 'event') this.#toIrc = this.#toIrc.then(() => this.#relayToIrc(entry));
      else this.#toRooms = this.#toRooms.then(() => this.#relayToRoom(entry));
    }
  }

  async #relayToIrc({ id, roomId, sender, text }: ReceivedEvent): Promise<void> {
    const portal = this.#journal.portals.find((known) => known.roomId === roomId);
    if (portal) await this.#irc.say(portal.channel, `<${sender}> ${text}`);
    this.#journal.add({ kind: 'relayed', id });
  }

  async #relayToRoom({ id, nick, channel, text }: ReceivedMessage): Promise<void> {
    const portal = this.#journal.portals.find((known) => known.channel === channel);
    if (portal)
      await retried(() =>
        this.#send(this.#bridge.getIntentFromLocalpart(`irc_${nick}`), portal.roomId, id, text),
      );
    this.#journal.add({ kind: 'relayed', id });
  }

  /** Sends a message under a transaction id that is the same at each attempt. */
  async #send(user: Intent, roomId: string, id: string, text: string): Promise<void> {
    await user.join(roomId);
    const path = `/_matrix/client/v3/rooms/${encodeURIComponent(roomId)}/send/m.room.message/${id}`;
    await user.matrixClient.doRequest('PUT', path, null, { msgtype: 'm.text', body: text });
  }
}

Logger.configure({ console: 'off' });
const settings = JSON.parse(process.argv[2]!) as BridgeSettings;
const irc = await IrcConnection.open(settings.ircPort, bridgeNick);
await new IrcBridge(settings, irc).run();
process.stdout.write('ready\n');
