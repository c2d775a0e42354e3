import type { PresenceSource, PresenceState, PresenceStatus } from './presence-status.ts';

/** What one device of a user does. Times in milliseconds since the epoch. */
interface DeviceActivity {
  presence: PresenceState;
  lastActive: number;
  lastSync: number;
  /** Syncs that are under way. */
  syncs: number;
}

/** After so long without a sync or anything else a device is gone. */
const goneAfter = 30_000;

/** After so long without activity an online device is idle. */
const idleAfter = 5 * 60_000;

/** For so long after an activity a user counts as active. */
const activeFor = 60_000;

/** Devices of one user that are told apart; those that were seen longest ago are forgotten first. */
const maxDevices = 50;

/** No client can call its device so. */
const formerDevice = '\0';

const ranks: Readonly<Record<PresenceState, number>> = { offline: 0, unavailable: 1, online: 2 };

/** How present a user of this server is, by what their devices do: as present as the most present of them. */
export class UserActivity implements PresenceSource {
  statusMsg: string | undefined;
  readonly #devices = new Map<string, DeviceActivity>();
  #lastActive: number;

  constructor(lastActive = 0) {
    this.#lastActive = lastActive;
  }

  /** What a device last said of itself; `undefined` for one that is not known, or gone. */
  presenceOf(deviceId: string): PresenceState | undefined {
    return this.#devices.get(deviceId)?.presence;
  }

  /** A device says how present its user is. */
  set(deviceId: string, presence: PresenceState, now: number): void {
    const device = this.#devices.get(deviceId);
    if (device) device.presence = presence;
    else this.#add(deviceId, { presence, lastActive: 0, lastSync: now, syncs: 0 });
    if (presence === 'online') this.#touch(deviceId, now);
  }

  /** What was known before a restart counts like a device that was seen just now and did nothing. */
  restore(presence: PresenceState, now: number): void {
    this.#add(formerDevice, { presence, lastActive: this.#lastActive, lastSync: now, syncs: 0 });
  }

  /** A sync of a known device begins. @returns to be called when it ends */
  beginSync(deviceId: string, now: number): (now: number) => void {
    const device = this.#devices.get(deviceId);
    if (!device) return () => undefined;
    device.syncs++;
    device.lastSync = now;
    if (device.presence === 'online') this.#touch(deviceId, now);
    return (end) => {
      device.syncs--;
      device.lastSync = end;
    };
  }

  /** The user has done something: whatever is idle no longer is. */
  act(now: number): void {
    for (const [deviceId, device] of this.#devices) {
      if (device.presence === 'offline') continue;
      device.presence = 'online';
      this.#touch(deviceId, now);
    }
  }

  at(now: number): PresenceStatus {
    let presence: PresenceState = 'offline';
    for (const [deviceId, device] of this.#devices) {
      if (isGone(device, now)) {
        this.#devices.delete(deviceId);
        continue;
      }
      const state =
        device.presence === 'online' && now - device.lastActive >= idleAfter
          ? 'unavailable'
          : device.presence;
      if (ranks[state] > ranks[presence]) presence = state;
    }
    const currentlyActive = presence === 'online' && now - this.#lastActive < activeFor;
    return { presence, statusMsg: this.statusMsg, lastActive: this.#lastActive, currentlyActive };
  }

  nextChange(now: number): number | undefined {
    const times = this.#devices.size > 0 ? [this.#lastActive + activeFor] : [];
    for (const device of this.#devices.values()) {
      times.push(device.lastActive + idleAfter);
      if (device.syncs === 0) times.push(lastSeen(device) + goneAfter);
    }
    const next = Math.min(...times.filter((time) => time > now));
    return next === Number.POSITIVE_INFINITY ? undefined : next;
  }

  #touch(deviceId: string, now: number): void {
    const device = this.#devices.get(deviceId);
    if (device) device.lastActive = now;
    this.#lastActive = now;
  }

  #add(deviceId: string, device: DeviceActivity): void {
    if (this.#devices.size >= maxDevices) {
      const [oldest] = [...this.#devices].sort(([, a], [, b]) => lastSeen(a) - lastSeen(b));
      if (oldest) this.#devices.delete(oldest[0]);
    }
    this.#devices.set(deviceId, device);
  }
}

const lastSeen = (device: DeviceActivity): number => Math.max(device.lastSync, device.lastActive);

const isGone = (device: DeviceActivity, now: number): boolean =>
  device.syncs === 0 && now - lastSeen(device) >= goneAfter;
