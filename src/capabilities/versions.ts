/**
 * Versions of the specification that are claimed. A version is listed once everything that clients conclude from it
 * is served: that, and not the number, is what they ask for.
 */
export const specVersions: readonly string[] = ['v1.1'];

/** Features that clients ask for by the names they had before they were in a version of the specification. */
export const unstableFeatures: Readonly<Record<string, boolean>> = {
  // Fields of profiles, in the specification since v1.16.
  'uk.tcpip.msc4133': true,
  'uk.tcpip.msc4133.stable': true,
  // Summaries of rooms, in the specification since v1.15.
  'org.matrix.msc3266': true,
  // Threads, lists of threads, and lists of relations in both directions and through others: since v1.3 to v1.10.
  'org.matrix.msc3440.stable': true,
  'org.matrix.msc3856.stable': true,
  'org.matrix.msc3715.stable': true,
  'org.matrix.msc3981': true,
  // Events by their time, in the specification since v1.6.
  'org.matrix.msc3030': true,
  // What was redacted, for moderators.
  'fi.mau.msc2815': true,
  // Events that are sent later; whether the operator allows it is said when a client tries.
  'org.matrix.msc4140': true,
  // Simplified sliding sync.
  'org.matrix.simplified_msc3575': true,
  // Rooms that are shared with somebody.
  'uk.half-shot.msc2666.query_mutual_rooms': true,
};
