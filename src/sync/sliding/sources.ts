import type { JsonObject } from '../../protocol/index.ts';

/** What waits for a device. Declared here, supplied at composition; so are the others. */
export interface ToDeviceSource {
  forSync(
    userId: string,
    deviceId: string,
    range: { after?: number; upTo: number; limit: number },
  ): Promise<{ readonly messages: readonly string[]; readonly position: number }>;
  acknowledge(userId: string, deviceId: string, position: number): Promise<void>;
}

/** Whose keys have changed. */
export interface DeviceListSource {
  isQuiet(after: number): boolean;
  changes(
    userId: string,
    after: number,
    upTo: number,
  ): Promise<{ readonly changed: readonly string[]; readonly left: readonly string[] }>;
}

interface KeySupply {
  readonly oneTimeKeyCounts: Readonly<Record<string, number>>;
  readonly unusedFallbackKeyTypes: readonly string[];
}

/** How many keys a device has left. */
export interface KeyCountSource {
  supply(userId: string, deviceId: string): KeySupply | Promise<KeySupply>;
}

/** What a user follows among the threads. Source: MSC4308. */
export interface ThreadSubscriptionSource {
  /** The newest of what has changed in `(after, upTo]`, and where the others begin; `undefined` when nothing has. */
  changes(
    userId: string,
    range: { after: number | undefined; upTo: number; limit: number },
  ): Promise<{ readonly sections: JsonObject; readonly older: string | undefined } | undefined>;
}

/** Where extensions find what they tell of; those without a source are not answered. */
export interface ExtensionSources {
  readonly toDevice?: ToDeviceSource | undefined;
  readonly deviceLists?: DeviceListSource | undefined;
  readonly keyCounts?: KeyCountSource | undefined;
  readonly threadSubscriptions?: ThreadSubscriptionSource | undefined;
}
