import { type ExpectedDifference, everywhere, status } from './expected-difference.ts';

/** Differences about push rules. */
export const pushRules: readonly ExpectedDifference[] = [
  {
    requests: everywhere,
    at: ['*.actions*[highlight]'],
    what: 'The predefined push rules do not set the tweak `highlight` to false',
    reason: 'The predefined rules of the specification leave the tweak out, since false is its default',
  },
  {
    requests: everywhere,
    at: ['*[.org.matrix.msc3930.rule.*]', '*[.io.element.msc4306.rule.*]'],
    reference: 'absent',
    what: 'Rules for polls (MSC3930) and thread subscriptions (MSC4306) exist',
    reason: 'The reference server has these rules only with its experimental features',
  },
  {
    requests: everywhere,
    at: ['*[.im.vector.jitsi]'],
    hearth: 'absent',
    what: 'There is no rule for Jitsi conferences',
    reason: 'The specification has no such rule',
  },
  {
    requests: ['anna PUT /pushrules/global/override/fifth (no conditions)'],
    at: status,
    what: 'Conditions may be left out of a push rule',
    reason: 'The schema does not require them; the rule then matches every event',
  },
  {
    requests: ['anna GET /pushrules/global/ (changed)'],
    at: ['body.override.[fifth]'],
    what: 'A push rule that was set without conditions is listed',
    reason: 'The schema does not require conditions, so the rule was accepted',
  },
];
