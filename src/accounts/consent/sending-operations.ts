/** Operations of the client-server API that send events, except leaving a room. */
export const sendingOperations: readonly string[] = [
  'createRoom',
  'upgradeRoom',
  'sendMessage',
  'redactEvent',
  'setRoomStateWithKey',
  'joinRoom',
  'joinRoomById',
  'knockRoom',
  'inviteUser',
  'kick',
  'ban',
  'unban',
];
