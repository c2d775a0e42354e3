/** Settings of the process of the bridge. */
export interface BridgeSettings {
  /** File of the registration. */
  readonly registration: string;
  readonly homeserverToken: string;
  readonly homeserverUrl: string;
  readonly domain: string;
  /** Port where the bridge receives transactions. */
  readonly port: number;
  readonly ircPort: number;
  /** File of the journal. */
  readonly journal: string;
}

/** A message with this text makes the bridge kill itself after it has stored the event, and before it answers. */
export const killingText = 'kill -9 before the answer';

/** Nickname of the bridge. */
export const bridgeNick = 'matrix';
