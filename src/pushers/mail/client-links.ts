/**
 * Returns the link to a room, or to an event in it, in the client of `email.client_base_url`. The link has the form of
 * matrix.to when the client is matrix.to, and otherwise the form of Element Web.
 */
export function clientLink(baseUrl: string, roomId: string, eventId?: string): string {
  const url = new URL(baseUrl);
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  const ids = [roomId, ...(eventId === undefined ? [] : [eventId])].map(encodeURIComponent).join('/');
  url.hash = url.hostname === 'matrix.to' ? `/${ids}` : `/room/${ids}`;
  return url.href;
}
