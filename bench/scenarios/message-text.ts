/** A message as people write them. */
export const messageText =
  'Shall we meet at seven by the bridge? Bring the map, and something warm to drink for the others.';
