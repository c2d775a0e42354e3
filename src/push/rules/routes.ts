import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import {
  deleteRule,
  findRule,
  type JsonObject,
  MatrixError,
  parseActions,
  parseRuleKind,
  putRule,
  setRuleActions,
  setRuleEnabled,
} from '../../protocol/index.ts';
import type { PushRules } from './push-rules.ts';

/** Returns the paths of an endpoint below `/pushrules/`. */
const pathsOf = <const P extends string>(path: P) =>
  [`/_proto/client/v3/pushrules/${path}`, `/_proto/client/r0/pushrules/${path}`] as const;

const rulePath = pathsOf('global/:kind/:ruleId');
const enabledPath = pathsOf('global/:kind/:ruleId/enabled');
const actionsPath = pathsOf('global/:kind/:ruleId/actions');

/**
 * The body of a request. The protocol functions validate its fields, and throw the errors that the specification
 * requires.
 */
const anyObject = Type.Unsafe<JsonObject>(Type.Object({}));

/** Returns the routes that read and change push rules. Source: client-server API, "Push Rules: API". */
export function pushRuleRoutes(rules: PushRules): Route[] {
  return [
    ...rulesetRoutes(rules),
    ...ruleRoutes(rules),
    ...enabledRoutes(rules),
    ...actionRoutes(rules),
    ...malformedRoutes(),
  ];
}

/**
 * Returns the routes for paths below `/pushrules/` that name no rule, for instance with an unknown scope, or a list
 * without its trailing slash. They answer M_UNRECOGNIZED with status 400, as the reference server does.
 */
function malformedRoutes(): Route[] {
  return (['GET', 'PUT', 'DELETE'] as const).map((method) =>
    route({ method, path: pathsOf('*'), auth: 'user' }, () => {
      throw new MatrixError(400, 'M_UNRECOGNIZED', 'Unrecognized path of push rules');
    }),
  );
}

function rulesetRoutes(rules: PushRules): Route[] {
  return [
    route({ operationId: 'getPushRules', method: 'GET', path: pathsOf(''), auth: 'user' }, ({ requester }) =>
      rules.content(requester.userId),
    ),
    route(
      { operationId: 'getPushRulesGlobal', method: 'GET', path: pathsOf('global/'), auth: 'user' },
      ({ requester }) => rules.rulesetOf(requester.userId),
    ),
    route(
      { method: 'GET', path: pathsOf('global/:kind/'), auth: 'user' },
      async ({ params, requester }) => (await rules.rulesetOf(requester.userId))[parseRuleKind(params.kind)],
    ),
  ];
}

function ruleRoutes(rules: PushRules): Route[] {
  return [
    route(
      { operationId: 'getPushRule', method: 'GET', path: rulePath, auth: 'user' },
      ({ params, requester }) => ruleOf(rules, requester.userId, params),
    ),
    route(
      {
        operationId: 'setPushRule',
        method: 'PUT',
        path: rulePath,
        auth: 'user',
        query: Type.Object({ before: Type.Optional(Type.String()), after: Type.Optional(Type.String()) }),
        body: anyObject,
      },
      async ({ params, requester, query, body }) => {
        const kind = parseRuleKind(params.kind);
        await rules.change(requester.userId, (stored) => putRule(stored, kind, params.ruleId, body, query));
        return {};
      },
    ),
    route(
      { operationId: 'deletePushRule', method: 'DELETE', path: rulePath, auth: 'user' },
      async ({ params, requester }) => {
        const kind = parseRuleKind(params.kind);
        await rules.change(requester.userId, (stored) => deleteRule(stored, kind, params.ruleId));
        return {};
      },
    ),
  ];
}

function enabledRoutes(rules: PushRules): Route[] {
  return [
    route(
      { operationId: 'isPushRuleEnabled', method: 'GET', path: enabledPath, auth: 'user' },
      async ({ params, requester }) => ({
        enabled: (await ruleOf(rules, requester.userId, params)).enabled,
      }),
    ),
    route(
      {
        operationId: 'setPushRuleEnabled',
        method: 'PUT',
        path: enabledPath,
        auth: 'user',
        // Early clients send the boolean itself instead of an object.
        body: Type.Union([Type.Object({ enabled: Type.Boolean() }), Type.Boolean()]),
      },
      async ({ params, requester, body }) => {
        const kind = parseRuleKind(params.kind);
        const enabled = typeof body === 'boolean' ? body : body.enabled;
        await rules.change(requester.userId, (stored) =>
          setRuleEnabled(stored, kind, params.ruleId, enabled),
        );
        return {};
      },
    ),
  ];
}

function actionRoutes(rules: PushRules): Route[] {
  return [
    route(
      { operationId: 'getPushRuleActions', method: 'GET', path: actionsPath, auth: 'user' },
      async ({ params, requester }) => ({
        actions: (await ruleOf(rules, requester.userId, params)).actions,
      }),
    ),
    route(
      {
        operationId: 'setPushRuleActions',
        method: 'PUT',
        path: actionsPath,
        auth: 'user',
        body: anyObject,
      },
      async ({ params, requester, body }) => {
        const kind = parseRuleKind(params.kind);
        const actions = parseActions(body);
        await rules.change(requester.userId, (stored) =>
          setRuleActions(stored, kind, params.ruleId, actions),
        );
        return {};
      },
    ),
  ];
}

async function ruleOf(rules: PushRules, userId: string, params: { kind: string; ruleId: string }) {
  return findRule(await rules.rulesetOf(userId), parseRuleKind(params.kind), params.ruleId);
}
