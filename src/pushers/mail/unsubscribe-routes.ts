import { Type } from 'typebox';
import { type Reply, type Route, route, toDeclaredSpelling } from '../../kernel/http/index.ts';
import type { Pages } from '../../kernel/pages/index.ts';
import { forbidden } from '../../protocol/index.ts';
import type { Pushers } from '../pushers.ts';
import { type UnsubscribeLinks, unsubscribePath } from './unsubscribe-links.ts';

export interface UnsubscribeRoutesDeps {
  readonly pushers: Pushers;
  readonly links: UnsubscribeLinks;
  readonly pages: Pages;
  readonly serverName: string;
}

const parameters = Type.Object({
  user_id: Type.String({ maxLength: 255 }),
  app_id: Type.String({ maxLength: 64 }),
  pushkey: Type.String({ maxLength: 512 }),
  token: Type.String({ maxLength: 255 }),
});

type Parameters = Readonly<Record<'user_id' | 'app_id' | 'pushkey' | 'token', string>>;

/**
 * Returns the routes of the links that end mailed notifications with one click: `GET` for a user who opens the link of
 * a mail, `POST` for the button of a mail program, which follows the `List-Unsubscribe` headers of the mail.
 * Source: RFC 8058.
 */
export function unsubscribeRoutes({ pushers, links, pages, serverName }: UnsubscribeRoutesDeps): Route[] {
  const contract = {
    path: toDeclaredSpelling(unsubscribePath),
    auth: 'none',
    errors: 'page',
    query: parameters,
  } as const;
  const unsubscribe = async (values: Parameters): Promise<Reply> => {
    const { user_id: userId, app_id: appId, pushkey, token } = values;
    if (!links.isValid({ userId, appId, pushkey }, token)) throw forbidden('This link is not valid');
    await pushers.remove(userId, { appId, pushkey });
    return pages.page('unsubscribed.html', { address: pushkey, server_name: serverName });
  };
  return [
    route({ ...contract, method: 'GET', getChanges: true }, ({ query }) => unsubscribe(query)),
    // The body is ignored: mail programs send it as a form of either content type, and it only repeats the header.
    route({ ...contract, method: 'POST' }, ({ query }) => unsubscribe(query)),
  ];
}
