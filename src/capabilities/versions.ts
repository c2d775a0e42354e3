/**
 * Versions of the specification that are claimed: those of which everything is served that clients conclude from the
 * number. What clients learn of in another way (the flows of a login, a capability) or by asking (previews of links) may
 * still be missing. See docs/client-gates.md and docs/decisions/0100.
 */
export const specVersions: readonly string[] = Array.from({ length: 19 }, (_, index) => `v1.${index + 1}`);

/** The options that decide what clients conclude from features. */
export interface FeatureOptions {
  readonly encryption_enabled_by_default_for_room_type: 'all' | 'invite' | 'off';
  /** Milliseconds; null: events can not be delayed. */
  readonly max_event_delay_duration: number | null;
}

/** Features that clients ask for by the names they had before they were in a version of the specification. */
const features = [
  // Cross-signing, since v1.1.
  'org.matrix.e2e_cross_signing',
  // Private read receipts, since v1.4.
  'org.matrix.msc2285.stable',
  // Rooms that are shared with somebody, since v1.19.
  'uk.half-shot.msc2666.query_mutual_rooms',
  // Events by their time, since v1.6.
  'org.matrix.msc3030',
  // Summaries of rooms, since v1.15.
  'org.matrix.msc3266',
  // Threads, lists of threads, and lists of relations in both directions and through others: since v1.3 to v1.10.
  'org.matrix.msc3440.stable',
  'org.matrix.msc3856.stable',
  'org.matrix.msc3715.stable',
  'org.matrix.msc3981',
  // Receipts and counts of unread messages for each thread, since v1.4.
  'org.matrix.msc3771',
  'org.matrix.msc3773',
  // Public rooms by their type, since v1.4.
  'org.matrix.msc3827.stable',
  // Mentions that are meant, since v1.7.
  'org.matrix.msc3952_intentional_mentions',
  // Media with a token, since v1.11.
  'org.matrix.msc3916.stable',
  // Fields of profiles, since v1.16.
  'uk.tcpip.msc4133',
  'uk.tcpip.msc4133.stable',
  // Who may invite: all or nobody, since v1.18, and lists of users and servers.
  'org.matrix.msc4380',
  'org.matrix.msc4380.stable',
  'org.matrix.msc4155',
  // What was redacted, for moderators.
  'fi.mau.msc2815',
  // Simplified sliding sync.
  'org.matrix.simplified_msc3575',
  // Threads that users follow; sliding sync tells of them too (MSC4308, which has no flag of its own).
  'org.matrix.msc4306',
] as const;

/** Presets of which clients ask whether the server encrypts rooms that are made with them. */
const presets = ['private', 'trusted_private', 'public'] as const;

/** The features that `/versions` tells of. */
export function unstableFeatures(options: FeatureOptions): Readonly<Record<string, boolean>> {
  const rule = options.encryption_enabled_by_default_for_room_type;
  const encrypts = (preset: string) => rule === 'all' || (rule === 'invite' && preset !== 'public');
  return {
    ...Object.fromEntries(features.map((name) => [name, true])),
    ...Object.fromEntries(presets.map((preset) => [`io.element.e2ee_forced.${preset}`, encrypts(preset)])),
    'org.matrix.msc4140': options.max_event_delay_duration !== null,
    // The proposal was accepted, so that its paths are those that will be in the specification.
    'org.matrix.msc4140.stable': options.max_event_delay_duration !== null,
  };
}
