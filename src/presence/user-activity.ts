import type { PresenceSource, PresenceState, PresenceStatus } from './presence-status.ts';

/** The activity of one device of a user. Times in milliseconds since the epoch. */
interface DeviceActivity {
  presence: PresenceState;
  lastActive: number;
  lastSync: number;
  /** Number of syncs that are under way. */
  syncs: number;
}

/** A device is offline after this many milliseconds without a sync or an activity. */
const offlineAfter = 30_000;

/** An online device is unavailable after this many milliseconds without an activity. */
const idleAfter = 5 * 60_000;

/** A user counts as active for this many milliseconds after an activity. */
const activeFor = 60_000;

/** Maximum number of devices of one user that are distinguished; the device seen longest ago is dropped first. */
const maxDevices = 50;

/** A device id that no client can have: stands for all devices from before a restart. */
const restoredDevice = '\0';

const ranks: Readonly<Record<PresenceState, number>> = { offline: 0, unavailable: 1, online: 2 };

/**
 * The presence of a local user, computed from the activity of their devices: the highest presence of any
 * device.
 */
export class UserActivity implements PresenceSource {
  statusMsg: string | undefined;
  readonly #devices = new Map<string, DeviceActivity>();
  #lastActive: number;

  constructor(lastActive = 0) {
    this.#lastActive = lastActive;
  }

  /** Returns the presence that a device reported last; `undefined` for unknown and dropped devices. */
  presenceOf(deviceId: string): PresenceState | undefined {
    return this.#devices.get(deviceId)?.presence;
  }

  /** Sets the presence that a device reports for its user. */
  set(deviceId: string, presence: PresenceState, now: number): void {
    const device = this.#devices.get(deviceId);
    if (device) device.presence = presence;
    else this.#add(deviceId, { presence, lastActive: 0, lastSync: now, syncs: 0 });
    if (presence === 'online') this.#touch(deviceId, now);
  }

  /** Restores the presence from before a restart, as a device that was last seen at `now` and did nothing. */
  restore(presence: PresenceState, now: number): void {
    this.#add(restoredDevice, { presence, lastActive: this.#lastActive, lastSync: now, syncs: 0 });
  }

  /** Begins a sync of a known device. @returns a function to call when the sync ends */
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

  /** Records an activity of the user: all unavailable devices become online. */
  recordActivity(now: number): void {
    for (const [deviceId, device] of this.#devices) {
      if (device.presence === 'offline') continue;
      device.presence = 'online';
      this.#touch(deviceId, now);
    }
  }

  at(now: number): PresenceStatus {
    let presence: PresenceState = 'offline';
    for (const [deviceId, device] of this.#devices) {
      if (isOffline(device, now)) {
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
      if (device.syncs === 0) times.push(lastSeen(device) + offlineAfter);
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

const isOffline = (device: DeviceActivity, now: number): boolean =>
  device.syncs === 0 && now - lastSeen(device) >= offlineAfter;
