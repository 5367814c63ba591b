// The cases of parameters.json with pg, as it is: no parameter has a type. TAP.
import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import pg from 'pg'

const client = new pg.Client()
const cases = JSON.parse(readFileSync('parameters.json'))
const parameter = (value) => value?.time ? new Date(value.time) :
  value?.bytes ? Buffer.from(value.bytes, 'hex') : value
let tests = 0, point = ''

await client.connect()
for (const { point: next, sql, with: values = [], gives, has, error, hint } of cases) {
  point = next ?? point
  if (!sql) continue
  let seen, right
  try {
    const { rows } = await client.query(
      { text: sql, values: values.map(parameter), rowMode: 'array' })
    seen = rows[0]?.[0]
    right = !error && (has ? JSON.stringify(rows).includes(has) :
      isDeepStrictEqual(seen ?? null, gives ?? null))
  } catch (failure) {
    seen = [failure.code, failure.message, failure.hint]
    right = failure.code === error && (failure.hint ?? '').includes(hint ?? '')
  }
  console.log(`${right ? 'ok' : 'not ok'} ${++tests} - pg: ${point}: ${sql}`)
  if (!right) console.log('#   ' + JSON.stringify(seen))
}
await client.end()
console.log(`1..${tests}`)
