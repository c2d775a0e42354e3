/**
 * Supported versions of the specification. The server has every feature that clients assume from one of these version
 * numbers. Features that clients detect in another way (login flows, capabilities) or by a request (URL previews) may
 * be missing. See docs/client-gates.md and docs/decisions/0100.
 */
export const specVersions: readonly string[] = Array.from({ length: 19 }, (_, index) => `v1.${index + 1}`);

/** Options that decide which features clients may assume. */
export interface FeatureOptions {
  readonly encryption_enabled_by_default_for_room_type: 'all' | 'invite' | 'off';
  /** Maximum milliseconds for which an event can be delayed; null disables delayed events. */
  readonly max_event_delay_duration: number | null;
  /** Whether devices log in by a QR code (MSC4108). */
  readonly qr_code_login?: boolean;
}

/** Features under the unstable names that clients look for. */
const features = [
  // Cross-signing, since v1.1.
  'org.matrix.e2e_cross_signing',
  // Private read receipts, since v1.4.
  'org.matrix.msc2285.stable',
  // Mutual rooms of two users, since v1.19.
  'uk.half-shot.msc2666.query_mutual_rooms',
  // Event by timestamp, since v1.6.
  'org.matrix.msc3030',
  // Room summaries, since v1.15.
  'org.matrix.msc3266',
  // Threads, lists of threads, and relations in both directions and of relations: added between v1.3 and v1.10.
  'org.matrix.msc3440.stable',
  'org.matrix.msc3856.stable',
  'org.matrix.msc3715.stable',
  'org.matrix.msc3981',
  // Receipts and unread counts per thread, since v1.4.
  'org.matrix.msc3771',
  'org.matrix.msc3773',
  // Room types in the room list, since v1.4.
  'org.matrix.msc3827.stable',
  // Intentional mentions, since v1.7.
  'org.matrix.msc3952_intentional_mentions',
  // Authenticated media, since v1.11.
  'org.matrix.msc3916.stable',
  // Profile fields, since v1.16.
  'uk.tcpip.msc4133',
  'uk.tcpip.msc4133.stable',
  // Invite permissions: all or none, since v1.18, and lists of users and servers.
  'org.matrix.msc4380',
  'org.matrix.msc4380.stable',
  'org.matrix.msc4155',
  // Content of redacted events, for moderators.
  'fi.mau.msc2815',
  // Deletion of account data.
  'org.matrix.msc3391',
  // Relation types in filters.
  'org.matrix.msc3874',
  // Simplified sliding sync.
  'org.matrix.simplified_msc3575',
  // Pushers of other devices can be disabled.
  'org.matrix.msc3881',
  // Thread subscriptions, also in sliding sync (MSC4308, which has no flag of its own).
  'org.matrix.msc4306',
] as const;

/** Presets of new rooms. Clients check for each whether the server encrypts such rooms. */
const presets = ['private', 'trusted_private', 'public'] as const;

/** Returns the `unstable_features` of `/versions`. */
export function unstableFeatures(options: FeatureOptions): Readonly<Record<string, boolean>> {
  const rule = options.encryption_enabled_by_default_for_room_type;
  const encrypts = (preset: string) => rule === 'all' || (rule === 'invite' && preset !== 'public');
  return {
    ...Object.fromEntries(features.map((name) => [name, true])),
    ...Object.fromEntries(presets.map((preset) => [`io.element.e2ee_forced.${preset}`, encrypts(preset)])),
    'org.matrix.msc4140': options.max_event_delay_duration !== null,
    // The proposal is accepted, so a future version of the specification will have its paths.
    'org.matrix.msc4140.stable': options.max_event_delay_duration !== null,
    ...(options.qr_code_login && { 'org.matrix.msc4108': true }),
  };
}
