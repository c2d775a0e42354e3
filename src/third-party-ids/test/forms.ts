import type { ServerWithMail } from './server-with-mail.ts';

/** Fetches the page at a path. */
export async function showPage(
  homeserver: ServerWithMail,
  path: string,
): Promise<{ status: number; text: string }> {
  const response = await fetch(homeserver.server.baseUrl + path);
  return { status: response.status, text: await response.text() };
}

/** Sends a form to a path, as a page does. */
export async function sendForm(
  homeserver: ServerWithMail,
  path: string,
  fields: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<{ response: Response; text: string }> {
  const body = new URLSearchParams(fields);
  const response = await fetch(homeserver.server.baseUrl + path, {
    method: 'POST',
    headers,
    body,
    redirect: 'manual',
  });
  return { response, text: await response.text() };
}

/** Returns the hidden fields of the form of a page. */
export const hiddenFieldsOf = (page: string): Record<string, string> =>
  Object.fromEntries(
    [...page.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)].map(([, name, value]) => [
      name!,
      value!,
    ]),
  );

/** Returns the URL that the form of a page is sent to, relative to the page. */
export const actionOf = (page: string): string =>
  (/<form method="post" action="([^"]+)"/.exec(page)?.[1] ?? '').replaceAll('&amp;', '&');
