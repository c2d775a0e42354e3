/** A text message of ordinary length. */
export const sampleText =
  'Shall we meet at seven by the bridge? Bring the map, and something warm to drink for the others.';
