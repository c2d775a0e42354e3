import { Type } from 'typebox';
import { type Route, type RouteRequest, route } from '../../kernel/http/index.ts';
import type { Pages } from '../../kernel/pages/index.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import type { StagePages } from './stage-pages.ts';

export interface FallbackDeps {
  readonly stagePages: StagePages;
  readonly pages: Pages;
  readonly randomness: Randomness;
}

const paths = [
  '/_proto/client/v3/auth/:stage/fallback/web',
  '/_proto/client/r0/auth/:stage/fallback/web',
] as const;

/**
 * Pages on which users complete stages that their client does not know. The client opens the page in a window. The page
 * reports the completion to the client's own window. Source: client-server API, "Fallback".
 */
export function fallbackRoutes({ stagePages, pages, randomness }: FallbackDeps): Route[] {
  const stageOf = (request: Pick<RouteRequest, 'ip' | 'url'>, type: string, session: string) => ({
    type,
    session,
    ip: request.ip,
    url: request.url.split('?', 1)[0] ?? '',
  });
  return [
    route(
      {
        method: 'GET',
        path: paths,
        auth: 'none',
        errors: 'page',
        query: Type.Object({ session: Type.String() }),
      },
      (request) => stagePages.show(stageOf(request, request.params.stage, request.query.session)),
    ),
    route(
      {
        method: 'POST',
        path: paths,
        auth: 'none',
        errors: 'page',
        bodyMode: 'form',
        body: Type.Object({ session: Type.String() }),
      },
      async (request) => {
        const fields = textFields(request.body);
        const page = await stagePages.submit(
          stageOf(request, request.params.stage, fields['session'] ?? ''),
          fields,
        );
        if (page !== undefined) return page;
        const nonce = randomString(randomness, 24);
        const policy = { 'script-src': `'nonce-${nonce}'` };
        return pages.page('auth_success.html', { script_nonce: nonce }, { policy });
      },
    ),
  ];
}

/** Returns the fields of a form that occur once. */
export const textFields = (body: object): Record<string, string> =>
  Object.fromEntries(
    Object.entries(body).filter((field): field is [string, string] => typeof field[1] === 'string'),
  );
