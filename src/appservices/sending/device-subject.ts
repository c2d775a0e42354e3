/** Splits the subject of an outbox entry about a device. User ids contain no spaces; device ids may. */
export function splitDevice(subject: string): [userId: string, deviceId: string] {
  const space = subject.indexOf(' ');
  return [subject.slice(0, space), subject.slice(space + 1)];
}
